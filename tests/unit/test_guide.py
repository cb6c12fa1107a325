"""The guide: each example has a test, and the tables are those of the engine."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from deltaic.commit.metrics import operation_metrics
from deltaic.commit.operations import Operation
from docs.site.tables import TABLES
from tests.support.definitions import create
from tests.support.guide_examples import GUIDE, Block, examples, pages
from tests.support.guide_tests import COMMANDS, COVERED, PROGRAMS, RUN, SYNTAX
from tests.support.memory_log import MemoryCommit
from tests.support.paths import ROOT

BLOCKS = [block for page in pages() for block in examples(page)]
GRAMMAR = ROOT / "jvm" / "spark" / "src" / "main" / "antlr4" / "DeltaicSql.g4"


def resource(name: str) -> Any:
    return json.loads((ROOT / "python" / "deltaic" / "resources" / name).read_text())


def is_run(block: Block) -> bool:
    return block.language in RUN or block.name in COMMANDS


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_each_example_has_a_test(block: Block) -> None:
    assert block.language, f"{block.page}.md:{block.line} has no language"
    if block.language == SYNTAX:
        return
    if block.name not in COVERED:
        assert is_run(block), f"{block.name}: add a test of it to tests/support/guide_tests.py"
        return
    file, _, test = COVERED[block.name].partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_listed_example_is_in_the_guide() -> None:
    names = {block.name for block in BLOCKS}
    assert (COMMANDS.keys() | COVERED.keys()) - names == set()
    assert set(PROGRAMS) <= {block.page for block in BLOCKS if block.language == "python"}


def test_targets_of_make_in_the_guide_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.M))
    text = "".join((GUIDE / f"{page}.md").read_text(encoding="utf-8") for page in pages())
    asked = set(re.findall(r"^make ([a-z0-9-]+)|`make ([a-z0-9-]+)`", text, re.M))
    named = {name for pair in asked for name in pair if name}
    assert "wheel" in named
    assert named <= targets


def test_tables_of_the_site_are_all_on_pages() -> None:
    text = "".join((GUIDE / f"{page}.md").read_text(encoding="utf-8") for page in pages())
    assert sorted(re.findall(r"^<!-- table: ([a-z-]+) -->$", text, re.M)) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_tables_have_as_many_cells_in_each_row(name: str) -> None:
    made = TABLES[name]("decisions/")
    widths = None
    for line in [*made.splitlines(), ""]:
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else None
        assert None in (widths, cells) or cells == widths, line
        widths = cells
    assert "None" not in made


def test_errors_say_what_to_do() -> None:
    made = TABLES["errors"]("")
    for condition in resource("error-conditions.json"):
        section = made.partition(f"### {condition}\n")[2].partition("\n### ")[0]
        assert re.search(r"\*\*What to do:\*\* \S", section), condition
    assert made.count("\n### ") == len(resource("error-conditions.json"))


@pytest.mark.parametrize("operation", Operation, ids=lambda operation: operation.value)
def test_metrics_of_the_guide_are_those_of_the_engine(operation: Operation) -> None:
    listed = resource("operation-metrics.json")
    reported = operation_metrics(MemoryCommit(create(), operation.value).summary())
    if operation.writes_a_query or operation in (Operation.REORG, Operation.UPGRADE_UNIFORM):
        return  # as WRITE and OPTIMIZE
    assert list(reported) == listed["operations"].get(operation.value, [])
    assert reported.keys() <= listed["metrics"].keys()


def test_every_statement_of_the_grammar_is_on_the_page_of_sql() -> None:
    page = (GUIDE / "sql.md").read_text(encoding="utf-8")
    grammar = GRAMMAR.read_text(encoding="utf-8")
    statements = grammar.partition("\nstatement\n")[2].partition("\n    ;\n")[0]
    syntax = " ".join(block.text for block in examples("sql") if block.language == SYNTAX)
    words = set(re.findall(r"\b[A-Z_]{2,}\b", statements + clauses(grammar))) - OPTIONAL_WORDS
    assert len(words) > 40
    assert {word for word in words if not re.search(rf"\b{word}\b", syntax)} == set()
    assert {line for line in HEADINGS if f"\n### {line}\n" not in page} == set()


#: Tokens of the grammar, and words that the page spells otherwise.
OPTIONAL_WORDS = {"INTEGER", "STRING", "WORD", "QUOTED"}
HEADINGS = ("DESCRIBE HISTORY", "OPTIMIZE", "REORG TABLE", "VACUUM", "RESTORE", "GENERATE")


def clauses(grammar: str) -> str:
    """Return the rules that are parts of statements."""
    names = ("cloneHeader", "noStatistics", "vacuumOption", "asOf")
    return "".join(re.findall(rf"^(?:{'|'.join(names)})\b.*?;$", grammar, re.M | re.S))


LINKING = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md"]
LINKING += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("name", LINKING)
def test_links_of_a_page_lead_to_files_and_headings(name: str) -> None:
    page = ROOT / name
    text = re.sub(
        r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)", text):
        led_to = page.parent / target if target else page
        assert led_to.exists(), target
        assert not anchor or anchor in anchors(led_to), f"{target}#{anchor}"


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as mkdocs and GitHub make them."""
    text = page.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        text = text.replace(f"<!-- table: {name} -->", table(""))
    words = (re.sub(r"[^\w\s-]", "", heading) for heading in re.findall(r"^#+ (.*)$", text, re.M))
    return {re.sub(r"\s", "-", heading.strip().lower()) for heading in words}
