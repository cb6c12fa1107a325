"""Long strings that cross the bridge once, on Python's side."""

from __future__ import annotations

import json
from typing import Any

from deltaic.spark.interned_strings import InternedStrings

WIDE = "a string as long as a schema of thousands of columns"


def response(strings: InternedStrings, request: Any, answer: Any = None) -> Any:
    """Return the response, which is `answer`, or else the request as it was resolved."""
    return json.loads(strings.answer(json.dumps(request), lambda body: answer or {"ok": body}))


def place(*at: str) -> dict[str, Any]:
    return {"at": list(at), "digest": "d1"}


def test_a_string_is_requested_once_and_then_cached() -> None:
    strings = InternedStrings()
    request = {"a": {"b": None, "c": 1}, "interned": [place("a", "b")]}

    def handle(body: Any) -> Any:
        raise AssertionError("it was handled without the string")

    assert json.loads(strings.answer(json.dumps(request), handle)) == {"missing": True}
    for sent in ({"strings": {"d1": WIDE}}, {}):
        reply = response(strings, {**request, **sent})
        assert reply == {"ok": {"a": {"b": None, "c": 1}}, "interned": [place("ok", "a", "b")]}


def test_a_response_names_the_strings_of_its_request_alone() -> None:
    strings = InternedStrings()
    request = {"s": None, "interned": [place("s")], "strings": {"d1": WIDE}}
    answer = {"ok": {"x": {"y": WIDE}, "other": WIDE + WIDE}}
    reply = response(strings, request, answer)
    assert reply == {
        "ok": {"x": {"y": None}, "other": WIDE + WIDE},
        "interned": [place("ok", "x", "y")],
    }
    assert response(strings, {"s": 1}, answer) == answer


def test_only_recently_used_strings_are_retained() -> None:
    strings = InternedStrings()
    for number in range(40):
        digest = f"d{number}"
        where = [{"at": ["s"], "digest": digest}, {"at": ["t"], "digest": "d0"}]
        request = {
            "s": None,
            "t": None,
            "interned": where,
            "strings": {digest: str(number), "d0": "0"},
        }
        assert "ok" in response(strings, request)
    evicted = {"s": None, "interned": [{"at": ["s"], "digest": "d1"}]}
    assert response(strings, evicted) == {"missing": True}
    for digest in ("d0", "d39"):
        assert "ok" in response(strings, {"s": None, "interned": [{"at": ["s"], "digest": digest}]})
