"""The examples of the guide, `docs/guide`: fenced blocks, in the order of a page.

Blocks of the languages ``python`` and ``sql`` run, all of a page in one session. A block ``output``
after one is what it prints, or what ``show`` prints of the last statement; a block ``error`` is the
error that it fails with. As in doctests, ``...`` stands for any text.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.paths import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = ROOT / "docs" / "guide"

#: The folder of tables in the examples, for which the test has one of its own.
FOLDER = "/tmp/guide"

_FENCED = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z]*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S
)
_HEADING = re.compile(r"^#+ (.+)$", re.M)
_END_OF_STATEMENT = re.compile(r";[ \t]*(?:--[^\n]*)?$", re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes
    ----------
    name
        The page, the heading, and the number of the block among those below it that are not
        output, by which tests refer to it.
    line
        Of its first line in the page, from 1.
    shown
        The block after it that says what it prints, or None.
    """

    page: str
    name: str
    line: int
    language: str
    text: str
    shown: Block | None = None


def pages() -> list[str]:
    """Return the names of the pages."""
    return sorted(path.stem for path in GUIDE.glob("*.md"))


def examples(page: str) -> list[Block]:
    """Return the blocks of a page, those of what others print apart."""
    found: list[Block] = []
    below: Counter[str] = Counter()
    text = (GUIDE / f"{page}.md").read_text(encoding="utf-8")
    for match in _FENCED.finditer(text):
        indent = match["indent"]
        body = "".join(
            line.removeprefix(indent) for line in match["text"].splitlines(keepends=True)
        )
        line = text.count("\n", 0, match.start()) + 2
        heading = _HEADING.findall(text, 0, match.start())[-1]
        shows = match["language"] in ("output", "error")
        below[heading] += not shows
        name = f"{page}: {heading} {below[heading]}"
        block = Block(page, name, line, match["language"], body)
        if shows:
            assert found and found[-1].shown is None, f"{page}:{line}: shows what no example prints"
            block = replace(found.pop(), shown=block)
        found.append(block)
    return found


def run(block: Block, spark: SparkSession, names: dict[str, Any], folder: Path) -> None:
    """Run an example and require that it prints what the page shows.

    Parameters
    ----------
    names
        The global names of the examples of the page in Python.
    folder
        Which stands for `FOLDER`.
    """
    place = f"{block.page}.md:{block.line}"
    text = block.text.replace(FOLDER, str(folder))
    printed = io.StringIO()
    error: Exception | None = None
    try:
        with contextlib.redirect_stdout(printed):
            if block.language == "sql":
                _run_sql(text, spark)
            else:
                exec(compile(text, place, "exec"), names)
    except Exception as raised:
        error = raised
    if block.shown is None or block.shown.language == "output":
        if error is not None:
            raise AssertionError(f"{place} fails") from error
        actual = printed.getvalue().replace(str(folder), FOLDER)
    else:
        assert error is not None, f"{place} does not fail"
        actual = str(error).replace(str(folder), FOLDER)
    if block.shown is not None:
        require_equal(block.shown.text, actual, place)
    else:
        assert block.language == "sql" or not actual, (
            f"{place} prints, and does not show:\n{actual}"
        )


def _run_sql(text: str, spark: SparkSession) -> None:
    result = None
    for statement in _statements(text):
        result = spark.sql(statement)
    if result is not None and result.columns:
        result.show(1000, truncate=False)


def _statements(text: str) -> Iterator[str]:
    for part in _END_OF_STATEMENT.split(text):
        if re.sub(r"--[^\n]*", "", part).strip():
            yield part.strip()


def require_equal(expected: str, actual: str, place: str) -> None:
    """Require that an example prints what the page shows."""

    def lines(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"

    same = doctest.OutputChecker().check_output(lines(expected), lines(actual), doctest.ELLIPSIS)
    assert same, f"{place} shows\n{lines(expected)}and is\n{lines(actual)}"
