"""Long strings cross the bridge once; see ``commit.InternedStrings``."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: The keys of a request or response for the positions of long strings, and for the strings.
_POSITIONS, _STRINGS = "interned", "strings"
_MAX_CACHED = 32


class InternedStrings:
    """A cache of the long strings of requests, by their digests; the last used are retained."""

    def __init__(self) -> None:
        self._strings: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, request: str, decide: Callable[[dict[str, Any]], Mapping[str, Any]]) -> str:
        """Return the JSON of the response of `decide`, or of the report that strings are missing.

        Parameters
        ----------
        request
            The JSON, in which digests may replace long strings.
        """
        body: dict[str, Any] = json.loads(request)
        positions = body.pop(_POSITIONS, ())
        digests = [position["digest"] for position in positions]
        strings = self._resolve(digests, body.pop(_STRINGS, {}))
        if strings is None:
            return '{"missing": true}'
        for position in positions:
            *path, last = position["at"]
            parent = body
            for name in path:
                parent = parent[name]
            parent[last] = strings[position["digest"]]
        reply = decide(body)
        return json.dumps(_with_digests(reply, strings) if strings else reply, ensure_ascii=False)

    def _resolve(self, digests: list[str], sent: Mapping[str, str]) -> dict[str, str] | None:
        with self._lock:
            for digest, string in sent.items():
                self._strings[digest] = string
            if any(digest not in self._strings for digest in digests):
                return None
            for digest in digests:
                self._strings.move_to_end(digest)
            strings = {digest: self._strings[digest] for digest in digests}
            while len(self._strings) > _MAX_CACHED:
                self._strings.popitem(last=False)
        return strings


def _with_digests(reply: Mapping[str, Any], strings: Mapping[str, str]) -> dict[str, Any]:
    """Return a response with the strings of its request replaced by digests."""
    digests = {string: digest for digest, string in strings.items()}
    positions: list[dict[str, Any]] = []

    def replaced(body: Mapping[str, Any], at: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, value in body.items():
            here = (*at, name)
            if isinstance(value, Mapping):
                yield name, dict(replaced(value, here))
            elif isinstance(value, str) and value in digests:
                positions.append({"at": here, "digest": digests[value]})
                yield name, None
            else:
                yield name, value

    short = dict(replaced(reply, ()))
    return {**short, _POSITIONS: positions} if positions else short
