"""The examples of the guide run, in the order of each page, and print what the page shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.databases import own_database
from tests.support.guide_examples import Block, examples, pages, run
from tests.support.guide_tests import COVERED, PROGRAMS, RUN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def runs_here(block: Block) -> bool:
    in_a_program = block.language == "python" and block.page in PROGRAMS
    return block.language in RUN and block.name not in COVERED and not in_a_program


BLOCKS = {page: [block for block in examples(page) if runs_here(block)] for page in pages()}


@pytest.mark.parametrize("page", [page for page, blocks in BLOCKS.items() if blocks])
def test_examples_of_a_page_print_what_it_shows(
    page: str, spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    names: dict[str, Any] = {"spark": session}
    with own_database(session, "guide"):
        for block in BLOCKS[page]:
            run(block, session, names, tmp_path)
