"""How a `DeltaTable` looks in a shell and in a notebook."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from deltaic import DeltaTable
from tests.support import log
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Cells(HTMLParser):
    """The cells of the rows of an HTML table, by the heading of the row."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag in ("th", "td"):
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data


def cells(html: str) -> dict[str, str]:
    parser = Cells()
    parser.feed(html)
    assert set(parser.tags) <= {"table", "caption", "code", "tr", "th", "td"}
    return dict(zip(parser.texts[::2], parser.texts[1::2], strict=True))


def test_repr_says_how_the_table_was_found(spark: SparkSession, table: str) -> None:
    path = f"{table}/it's"
    build_table(spark, path, "id INT", [[(1,)]])
    assert repr(DeltaTable.forPath(spark, path)) == f"DeltaTable.forPath(spark, {path!r})"
    spark.sql(f'CREATE TABLE displayed USING delta LOCATION "{path}"')
    try:
        found = DeltaTable.forName(spark, "displayed")
        assert repr(found) == f"DeltaTable.forName(spark, {found._name!r})"
        assert "displayed" in repr(found)
        assert repr(found.alias("t")) == f"{found!r}.alias('t')"
        assert eval(repr(found), {"DeltaTable": DeltaTable, "spark": spark}).toDF().count() == 1
    finally:
        spark.sql("DROP TABLE displayed")


def test_html_shows_the_table_and_escapes_what_it_shows(spark: SparkSession, table: str) -> None:
    path = f"{table}<b>&amp;"
    build_table(
        spark,
        path,
        "id INT, p INT",
        [[(1, 1), (2, 2)]],
        partition_by=["p"],
        properties={"delta.appendOnly": "true"},
    )
    spark.sql(f"COMMENT ON TABLE delta.`{path}` IS '<script>alert(1)</script>'")
    shown = cells(DeltaTable.forPath(spark, path)._repr_html_())
    assert shown["Location"] == f"file:{path}"
    assert shown["Description"] == "<script>alert(1)</script>"
    assert shown["Partitioned by"] == "p"
    size = sum(add["size"] for add in log.active_files(path))
    assert shown["Files"] == f"2 ({size} bytes)"
    assert shown["Properties"] == "delta.appendOnly = true, delta.enableDeletionVectors = true"
    assert "deletionVectors" in shown["Table features"]
    assert "Clustered by" not in shown


def test_html_of_a_table_that_is_gone_is_its_repr(spark: SparkSession, table: str) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    found = DeltaTable.forPath(spark, table)
    shutil.rmtree(table)
    assert found._repr_html_() == f"<code>DeltaTable.forPath(spark, &#x27;{table}&#x27;)</code>"
