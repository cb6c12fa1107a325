"""The requirements of the protocol and the tests that hold them: `docs/protocol.md`.

``tests/protocol.json`` lists each must and should of the newest edition of the protocol, and of the
design of deletion vectors, by heading and in the order of the document. A test names those that it
holds: in Python by ``@pytest.mark.protocol("column-mapping-3")``, in Scala by a comment
``// Protocol: column-mapping-3`` right before ``test(...)``.

Usage: ``python -m tests.support.protocol_page``, which ``make docs`` runs.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any

from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "protocol.md"
_REQUIREMENTS = ROOT / "tests" / "protocol.json"

_SCALA_MARK = re.compile(
    r"// Protocol: (?P<names>[a-z0-9, -]+)\n\s*(?:\w+\.)?(?:test|property)\(\s*s?\"(?P<test>.*?)\""
)

_INTRODUCTION = """\
# The protocol as a test

`make docs` generates this page from [tests/protocol.json](../tests/protocol.json) and the tests: do
not edit it. It lists every demand of the newest edition of the
[Delta transaction log protocol](https://github.com/delta-io/delta/blob/master/PROTOCOL.md) and of
the design of deletion vectors, in the order of the document and in our words, with the tests that
hold it. A demand that Deltaic does not meet, or that no test holds, has a note.
"""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A demand of the protocol.

    Attributes
    ----------
    name
        What tests call it: its last heading and its number under it.
    line
        Of the document that it is in, from 1.
    gap
        What is not met or not tested; empty if there is nothing.
    """

    name: str
    heading: str
    document: str
    line: int
    keyword: str
    rule: str
    binds: str
    gap: str = ""
    tests: list[TestPlace] = field(default_factory=list)


@dataclass(frozen=True, slots=True, order=True)
class TestPlace:
    """A test in a file, whose path is relative to the checkout."""

    #: Not a test itself, for pytest.
    __test__ = False

    path: str
    name: str


def requirements() -> list[Requirement]:
    """Return all demands, with their tests."""
    marked = marks()
    loaded: list[dict[str, Any]] = json.loads(_REQUIREMENTS.read_text(encoding="utf-8"))
    return [Requirement(**record, tests=marked.get(record["name"], [])) for record in loaded]


@cache
def marks() -> Mapping[str, list[TestPlace]]:
    """Return the tests that name each requirement."""
    found: dict[str, list[TestPlace]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, test in _python_marks(path.read_text(encoding="utf-8")):
            found.setdefault(name, []).append(TestPlace(str(path.relative_to(ROOT)), test))
    for path in sorted((ROOT / "jvm").glob("*/src/test/scala/**/*Suite.scala")):
        for mark in _SCALA_MARK.finditer(path.read_text(encoding="utf-8")):
            for name in mark["names"].split(", "):
                place = TestPlace(str(path.relative_to(ROOT)), mark["test"])
                found.setdefault(name.strip(), []).append(place)
    return found


def _python_marks(text: str) -> Iterator[tuple[str, str]]:
    if "mark.protocol" not in text:
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if ast.unparse(decorator).startswith("pytest.mark.protocol("):
                    assert isinstance(decorator, ast.Call)
                    for name in decorator.args:
                        yield ast.literal_eval(name), node.name


def page(listed: Sequence[Requirement]) -> str:
    """Return the page as Markdown."""
    held = sum(1 for requirement in listed if requirement.tests and not requirement.gap)
    parts = [
        _INTRODUCTION,
        f"{len(listed)} demands; {held} are met and tested, {len(listed) - held} have a note.\n",
    ]
    for heading, group in groupby(listed, key=lambda requirement: requirement.heading):
        parts.append(f"## {heading}\n")
        rows = ["| | binds | demand | tests |", "|---|---|---|---|"]
        rows += [_row(requirement) for requirement in group]
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def _row(requirement: Requirement) -> str:
    number = requirement.name.rpartition("-")[2]
    tests = "<br>".join(
        f"[{_escaped(test.name)}](../{test.path})" for test in sorted(set(requirement.tests))
    )
    note = f" **{_escaped(requirement.gap)}**" if requirement.gap else ""
    demand = f"*{requirement.keyword}*: {_escaped(requirement.rule)}{note}"
    return f"| {number} | {requirement.binds} | {demand} | {tests} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(requirements()), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is up to date")


if __name__ == "__main__":
    main()
