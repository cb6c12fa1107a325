"""Long texts that cross the bridge once, on Python's side."""

from __future__ import annotations

import json
from typing import Any

from deltaic.spark.wide_texts import WideTexts

WIDE = "a text as long as a schema of thousands of columns"


def asked(texts: WideTexts, question: Any, answer: Any = None) -> Any:
    """Return the reply, which is what `answer` is, or else the question as it was understood."""
    return json.loads(texts.answer(json.dumps(question), lambda body: answer or {"ok": body}))


def place(*at: str) -> dict[str, Any]:
    return {"at": list(at), "digest": "d1"}


def test_a_text_is_asked_for_once_and_then_known() -> None:
    texts = WideTexts()
    question = {"a": {"b": None, "c": 1}, "wide": [place("a", "b")]}

    def decide(body: Any) -> Any:
        raise AssertionError("it was decided without the text")

    assert json.loads(texts.answer(json.dumps(question), decide)) == {"lacks": True}
    for told in ({"texts": {"d1": WIDE}}, {}):
        reply = asked(texts, {**question, **told})
        assert reply == {"ok": {"a": {"b": None, "c": 1}}, "wide": [place("ok", "a", "b")]}


def test_an_answer_names_the_texts_of_its_question_alone() -> None:
    texts = WideTexts()
    told = {"s": None, "wide": [place("s")], "texts": {"d1": WIDE}}
    answer = {"ok": {"x": {"y": WIDE}, "other": WIDE + WIDE}}
    reply = asked(texts, told, answer)
    assert reply == {
        "ok": {"x": {"y": None}, "other": WIDE + WIDE},
        "wide": [place("ok", "x", "y")],
    }
    assert asked(texts, {"s": 1}, answer) == answer


def test_only_texts_used_last_are_kept() -> None:
    texts = WideTexts()
    for number in range(40):
        digest = f"d{number}"
        where = [{"at": ["s"], "digest": digest}, {"at": ["t"], "digest": "d0"}]
        told = {"s": None, "t": None, "wide": where, "texts": {digest: str(number), "d0": "0"}}
        assert "ok" in asked(texts, told)
    assert asked(texts, {"s": None, "wide": [{"at": ["s"], "digest": "d1"}]}) == {"lacks": True}
    for digest in ("d0", "d39"):
        assert "ok" in asked(texts, {"s": None, "wide": [{"at": ["s"], "digest": digest}]})
