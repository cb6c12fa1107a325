"""Operations on the rows of one table, each on Spark and as a function of these rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from deltaic import DeltaTable
from tests.support.session_settings import session_settings

#: Rows as (id, p, v), counted.
Rows = Counter[tuple[int, int, str]]

BASE: Rows = Counter((n, 1 if n < 5 else 2, "base") for n in range(1, 9))


@dataclass(frozen=True)
class Operation:
    """One operation, on Spark and on rows.

    Attributes
    ----------
    run
        Takes the session and the table, as SQL names it.
    """

    name: str
    run: Callable[[SparkSession, str], object]
    apply: Callable[[Rows], Rows]

    def __str__(self) -> str:
        return self.name


def sql(text: str) -> Callable[[SparkSession, str], object]:
    return lambda spark, table: spark.sql(text.replace("{t}", table))


def path_of(table: str) -> str:
    return table.removeprefix("delta.`").removesuffix("`")


def changed(rows: Rows, change: Callable[[int, int, str], list[tuple[int, int, str]]]) -> Rows:
    return Counter(new for row in rows.elements() for new in change(*row))


def append(p: int) -> Operation:
    row = (100 * p, p, "appended")
    return Operation(
        "append", sql(f"INSERT INTO {{t}} VALUES {row}"), lambda rows: rows + Counter([row])
    )


def overwrite() -> Operation:
    row = (50, 1, "overwritten")
    return Operation(
        "overwrite", sql(f"INSERT OVERWRITE {{t}} VALUES {row}"), lambda rows: Counter([row])
    )


def overwrite_partition(p: int) -> Operation:
    def run(spark: SparkSession, table: str) -> None:
        rows = spark.sql(f"SELECT {60 + p} AS id, {p} AS p, 'renewed' AS v")
        writer = rows.write.format("delta").mode("overwrite")
        writer.option("partitionOverwriteMode", "dynamic").save(path_of(table))

    def apply(rows: Rows) -> Rows:
        kept = changed(rows, lambda i, q, v: [] if q == p else [(i, q, v)])
        return kept + Counter([(60 + p, p, "renewed")])

    return Operation("overwrite of a partition", run, apply)


def insert_from_itself(p: int) -> Operation:
    return Operation(
        "insert from itself",
        sql(f"INSERT INTO {{t}} SELECT id + 1000, p, v FROM {{t}} WHERE {where(p)}"),
        lambda rows: (
            rows + changed(rows, lambda i, q, v: [(i + 1000, q, v)] if within(p, i, q) else [])
        ),
    )


def where(p: int) -> str:
    """Both select the same rows of the base, by partition or, if there are none, by range."""
    return f"p = {p} AND id BETWEEN {4 * p - 3} AND {4 * p}"


def within(p: int, i: int, q: int) -> bool:
    return q == p and 4 * p - 3 <= i <= 4 * p


def delete(p: int) -> Operation:
    one = 4 * p - 2
    return Operation(
        "delete",
        sql(f"DELETE FROM {{t}} WHERE p = {p} AND id = {one}"),
        lambda rows: changed(rows, lambda i, q, v: [] if (i, q) == (one, p) else [(i, q, v)]),
    )


def update(p: int) -> Operation:
    one = 4 * p - 1
    return Operation(
        "update",
        sql(f"UPDATE {{t}} SET v = concat(v, '+') WHERE p = {p} AND id = {one}"),
        lambda rows: changed(rows, lambda i, q, v: [(i, q, v + "+" * ((i, q) == (one, p)))]),
    )


def merge(p: int, matched: bool) -> Operation:
    """MERGE two rows by id within the partition; one is in the base if any is to match."""
    known, new = (4 * p, 300 + p) if matched else (302 + p, 300 + p)
    clause = "WHEN MATCHED THEN UPDATE SET v = s.v" if matched else ""

    def apply(rows: Rows) -> Rows:
        source = {known: "merged", new: "merged"}
        there = {i for i, q, _ in rows if q == p}
        after = changed(
            rows,
            lambda i, q, v: [(i, q, source[i] if matched and q == p and i in source else v)],
        )
        return after + Counter((i, p, v) for i, v in source.items() if i not in there)

    return Operation(
        "merge" if matched else "merge that inserts",
        sql(
            f"MERGE INTO {{t}} t USING (SELECT * FROM VALUES ({known}, 'merged'), ({new}, 'merged')"
            f" AS s(id, v)) s ON t.id = s.id AND t.p = {p} {clause}"
            f" WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, {p}, s.v)"
        ),
        apply,
    )


def merge_of_the_rest() -> Operation:
    """MERGE that deletes what its source does not have: of the base, one row of p = 1."""
    return Operation(
        "merge of the rest",
        sql(
            "MERGE INTO {t} t USING (SELECT explode(sequence(2, 100)) AS id) s ON t.id = s.id"
            " WHEN NOT MATCHED BY SOURCE THEN DELETE"
        ),
        lambda rows: changed(rows, lambda i, q, v: [(i, q, v)] if 2 <= i <= 100 else []),
    )


def replace_row() -> Operation:
    """Replace one row of p = 1 by another."""
    return Operation(
        "REPLACE WHERE of a row",
        sql("INSERT INTO {t} REPLACE WHERE id = 1 VALUES (1, 1, 'replaced')"),
        lambda rows: (
            changed(rows, lambda i, q, v: [(i, q, v)] if i != 1 else [])
            + Counter([(1, 1, "replaced")])
        ),
    )


def delete_half() -> Operation:
    """Delete half of the rows of p = 1; the rest of a heavily deleted file is copied."""

    def run(spark: SparkSession, table: str) -> None:
        with session_settings(spark, {"spark.deltaic.deletionVectors.minDeletedBytes": "0"}):
            spark.sql(f"DELETE FROM {table} WHERE p = 1 AND id IN (1, 4)")

    return Operation(
        "delete of half",
        run,
        lambda rows: changed(rows, lambda i, q, v: [] if q == 1 and i in (1, 4) else [(i, q, v)]),
    )


def replace_columns(spark: SparkSession, table: str) -> None:
    rows = spark.sql("SELECT 70 AS id, 1 AS p, 'replaced' AS v, 0 AS w")
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("p").save(path_of(table))


def set_domain(spark: SparkSession, table: str) -> None:
    DeltaTable.forPath(spark, path_of(table)).setDomainMetadata("app", "{}")


def defines(name: str, statement: str) -> Operation:
    """Return a statement that leaves the rows alone."""
    return Operation(name, sql(statement), lambda rows: rows)
