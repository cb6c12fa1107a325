"""The examples of the guide run, in the order of each page, and print what the page shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.databases import own_database
from tests.support.guide_examples import examples, pages, run
from tests.support.guide_tests import TESTS_OF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The examples of each page that run here: the others have tests of their own.
RUN_HERE = {
    page: [
        block
        for block in examples(page)
        if block.language in ("python", "sql") and block.name not in TESTS_OF
    ]
    for page in pages()
}


@pytest.mark.parametrize("page", [page for page, blocks in RUN_HERE.items() if blocks])
def test_examples_of_a_page_print_what_it_shows(
    page: str, spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    names: dict[str, Any] = {"spark": session}
    with own_database(session, "guide"):
        for block in RUN_HERE[page]:
            run(block, session, names, tmp_path)
