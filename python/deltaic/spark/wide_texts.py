"""Long texts cross the bridge once: ``bridge.WideTexts`` says how."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: What stands beside a question or an answer: where which text belongs, and the texts themselves.
_PLACES, _TEXTS = "wide", "texts"
_KEPT = 32


class WideTexts:
    """Texts that questions have held, by their digests; those used last are kept."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, question: str, decide: Callable[[dict[str, Any]], Mapping[str, Any]]) -> str:
        """Return the JSON of what `decide` makes of a question, or of that texts are lacking.

        Parameters
        ----------
        question
            The JSON, in which long texts may be left out.
        """
        body: dict[str, Any] = json.loads(question)
        places = body.pop(_PLACES, ())
        known = self._known([place["digest"] for place in places], body.pop(_TEXTS, {}))
        if known is None:
            return '{"lacks": true}'
        for place in places:
            *path, last = place["at"]
            parent = body
            for name in path:
                parent = parent[name]
            parent[last] = known[place["digest"]]
        reply = decide(body)
        return json.dumps(_shortened(reply, known) if known else reply, ensure_ascii=False)

    def _known(self, digests: list[str], told: Mapping[str, str]) -> dict[str, str] | None:
        with self._lock:
            for digest, text in told.items():
                self._texts[digest] = text
            if any(digest not in self._texts for digest in digests):
                return None
            for digest in digests:
                self._texts.move_to_end(digest)
            known = {digest: self._texts[digest] for digest in digests}
            while len(self._texts) > _KEPT:
                self._texts.popitem(last=False)
        return known


def _shortened(reply: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """Return an answer without the texts that its question has held."""
    digests = {text: digest for digest, text in known.items()}
    places: list[dict[str, Any]] = []

    def without(body: Mapping[str, Any], at: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, value in body.items():
            here = (*at, name)
            if isinstance(value, Mapping):
                yield name, dict(without(value, here))
            elif isinstance(value, str) and value in digests:
                places.append({"at": here, "digest": digests[value]})
                yield name, None
            else:
                yield name, value

    short = dict(without(reply, ()))
    return {**short, _PLACES: places} if places else short
