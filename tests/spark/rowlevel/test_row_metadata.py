"""Changes that reference `_metadata`, by the positions that rows were built at; and the history."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.table_builder import Row, build_table, in_order, rows_of

SCHEMA = "id INT, v STRING"
#: The id of a row encodes its file and its position in it.
FILES: list[list[Row]] = [[(10 * file + place, "") for place in range(4)] for file in range(3)]
ROWS = [row for rows in FILES for row in rows]
MERGE = "MERGE INTO {t} t USING (SELECT explode(array(1, 12, 70)) k) s ON t.id = s.k "


def place(key: int) -> int:
    return key % 10


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("DELETE FROM {t} WHERE _metadata.row_index > 1", lambda k: None if place(k) > 1 else ""),
        ("DELETE FROM {t} WHERE _metadata.file_name = '{f}'", lambda k: None if k < 10 else ""),
        (
            "DELETE FROM {t} x WHERE x._metadata.row_index = 0 AND id IN (SELECT 10)",
            lambda k: None if k == 10 else "",
        ),
        (
            "UPDATE {t} x SET v = x._metadata.row_index WHERE x._metadata.file_name <> '{f}'",
            lambda k: "" if k < 10 else str(place(k)),
        ),
        (
            MERGE + "AND t._metadata.row_index = 1 WHEN MATCHED THEN UPDATE SET v = 'm' "
            "WHEN NOT MATCHED BY SOURCE AND t._metadata.row_index = 3 THEN DELETE",
            lambda k: "m" if k == 1 else None if place(k) == 3 else "",
        ),
        (
            MERGE + "WHEN MATCHED AND t._metadata.row_index = 2 THEN UPDATE SET v = "
            "t._metadata.row_index WHEN NOT MATCHED THEN INSERT (id, v) VALUES (70, '')",
            lambda k: "2" if k == 12 else "",
        ),
        (
            MERGE + "AND t._metadata.row_index <> 1 WHEN NOT MATCHED AND k < 70 "
            "THEN INSERT (id, v) VALUES (k + 100, '')",
            lambda k: "",
        ),
    ],
)
@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "rewrite"])
def test_rows_are_found_by_where_they_are(
    spark: SparkSession,
    table: str,
    statement: str,
    change: Callable[[int], str | None],
    vectors: bool,
) -> None:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=vectors)
    names = spark.sql(f"SELECT _metadata.file_name f FROM delta.`{table}` WHERE id = 0").collect()
    spark.sql(statement.format(t=f"delta.`{table}`", f=names[0].f))
    inserted = [70] if "VALUES (70" in statement else [101] if "k + 100" in statement else []
    expected = [(key, change(key)) for key in [*(key for key, _ in ROWS), *inserted]]
    assert rows_of(spark, table) == in_order(row for row in expected if row[1] is not None)
    assert log.versions(table) == [0, 1]


def test_history_shows_the_condition(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    target = f"delta.`{table}`"
    for version, (statement, predicate) in enumerate(
        [
            (f"DELETE FROM {target} t WHERE t.id > 20 AND v = ''", '["((id > 20) AND (v = ))"]'),
            (f"UPDATE {target} SET v = 'x'", "[]"),
            (f"UPDATE {target} SET v = 'y' WHERE id IN (SELECT 10)", '["(id IN (listquery()))"]'),
            (f"DELETE FROM {target}", '["true"]'),
        ],
        start=1,
    ):
        spark.sql(statement)
        assert log.commit_info(table, version)["operationParameters"] == {"predicate": predicate}
