"""Tables as Deltaic writes them, with the rows they must show: what peers are asked to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.table_builder import append_file, build_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows of every primitive and nested type: ordinary ones, extremes, and nulls.
ALL_TYPES = """
SELECT * FROM VALUES
  (1Y, 2S, 3, 4L, CAST(1.5 AS FLOAT), 2.5D, 1.25BD, true, 'text', X'00FF', DATE'2024-02-29',
   TIMESTAMP'2024-02-29 12:34:56.789012', CAST(12345.6789 AS DECIMAL(38, 10)),
   named_struct('a', 1, 'b', named_struct('c', 'deep')), array(1, NULL, 3),
   map('k', 1, 'l', NULL), array(named_struct('m', map(1, array('x'))))),
  (-128Y, -32768S, -2147483648, -9223372036854775808L, CAST('NaN' AS FLOAT),
   CAST('-Infinity' AS DOUBLE), -9.99BD, false, '', X'', DATE'0001-01-01',
   TIMESTAMP'1970-01-01 00:00:00', CAST(-1 AS DECIMAL(38, 10)),
   named_struct('a', NULL, 'b', named_struct('c', NULL)), array(), map(), array(NULL)),
  (127Y, 32767S, 2147483647, 9223372036854775807L, CAST(3.4028235E38 AS FLOAT), 4.9E-324D,
   9.99BD, true, 'ä€𝄞', X'DEADBEEF', DATE'9999-12-31', TIMESTAMP'2262-01-01 00:00:00.000001',
   CAST('9999999999999999999999999999.9999999999' AS DECIMAL(38, 10)),
   named_struct('a', 7, 'b', NULL), array(9), map('ä', 0), array(named_struct('m', NULL))),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL)
AS t(byte, short, int, long, float, double, dec, bool, string, bin, date, ts, bigdec, struct,
     list, map, nested)
"""

#: Partition values that a path or a parser could get wrong.
ODD_PARTITIONS = """
SELECT * FROM VALUES
  (1, 'plain', DATE'2024-02-29', TIMESTAMP'2024-02-29 01:02:03.000004', 1.50BD, true),
  (2, 'a b/c\\\\d', DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999', 0.01BD, false),
  (3, 'x=y%41+z', DATE'9999-12-31', TIMESTAMP'2024-01-01 00:00:00', 0.00BD, NULL),
  (4, 'ä€𝄞:*?"<>|', NULL, NULL, NULL, true),
  (5, '#[]{}^&''`~;,', DATE'2024-02-29', NULL, 99999999.99BD, false),
  (6, '__HIVE', NULL, TIMESTAMP'2024-01-01 00:00:00', 1.50BD, NULL),
  (7, NULL, NULL, NULL, NULL, NULL),
  (8, 'null', DATE'2024-02-29', NULL, NULL, NULL),
  (9, ' padded ', NULL, NULL, NULL, true),
  (10, '.', NULL, NULL, NULL, true)
AS t(id, s, d, ts, n, b)
"""


@dataclass(frozen=True)
class Sample:
    """A table: `write` makes it and returns a DataFrame, never in Delta, with the rows it holds."""

    name: str
    write: Callable[[SparkSession, str], DataFrame]
    deletion_vectors: bool = False
    #: What delta-rs 1.6 fails with, where it has a defect of its own.
    delta_rs_fails: str | None = None

    def __str__(self) -> str:
        return self.name


def ids(spark: SparkSession, numbers: Sequence[int]) -> DataFrame:
    return spark.createDataFrame([(n, f"row {n}") for n in numbers], "id BIGINT, `x.y` STRING")


def write_ids(spark: SparkSession, path: str, sizes: Sequence[int], deletion_vectors: bool) -> None:
    start, files = 0, []
    for size in sizes:
        files.append([(n, f"row {n}") for n in range(start, start + size)])
        start += size
    build_table(spark, path, "id BIGINT, `x.y` STRING", files, deletion_vectors=deletion_vectors)


def appended(spark: SparkSession, path: str) -> DataFrame:
    write_ids(spark, path, [5, 5], deletion_vectors=False)
    append_file(spark, path, "id BIGINT, `x.y` STRING", [(10, "row 10")])
    return ids(spark, range(11))


def all_types(spark: SparkSession, path: str) -> DataFrame:
    df = spark.sql(ALL_TYPES)
    df.write.format("delta").save(path)
    return df


def odd_partitions(spark: SparkSession, path: str) -> DataFrame:
    df = spark.sql(ODD_PARTITIONS)
    df.write.format("delta").partitionBy("s", "d", "ts", "n", "b").save(path)
    return df


def negative_decimal_partitions(spark: SparkSession, path: str) -> DataFrame:
    df = spark.sql("SELECT * FROM VALUES (1, -0.01BD), (2, -12.50BD), (3, 7.00BD) AS t(id, n)")
    df.write.format("delta").partitionBy("n").save(path)
    return df


def inline_vectors(spark: SparkSession, path: str) -> DataFrame:
    write_ids(spark, path, [10, 10], deletion_vectors=True)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (3, 15)")
    return ids(spark, [n for n in range(20) if n not in (3, 15)])


def stored_vectors(spark: SparkSession, path: str) -> DataFrame:
    write_ids(spark, path, [3000, 3000, 10], deletion_vectors=True)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 3 = 0")
    return ids(spark, [n for n in range(6010) if n % 3])


def merged_vectors(spark: SparkSession, path: str) -> DataFrame:
    write_ids(spark, path, [3000, 3000, 10], deletion_vectors=True)
    for condition in ("id % 3 = 0", "id % 1000 = 1", "id BETWEEN 2900 AND 3100"):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE {condition}")
    kept = [n for n in range(6010) if n % 3 and n % 1000 != 1 and not 2900 <= n <= 3100]
    return ids(spark, kept)


def rewritten(spark: SparkSession, path: str) -> DataFrame:
    write_ids(spark, path, [10, 10, 5], deletion_vectors=False)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 4 = 1 OR id >= 20")
    return ids(spark, [n for n in range(20) if n % 4 != 1])


def overwritten(spark: SparkSession, path: str) -> DataFrame:
    write_ids(spark, path, [10], deletion_vectors=False)
    ids(spark, [100, 101]).write.format("delta").mode("overwrite").save(path)
    return ids(spark, [100, 101])


def created_by_select(spark: SparkSession, path: str) -> DataFrame:
    query = "SELECT id, id % 3 AS p FROM range(30)"
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY (p) AS {query}")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (30, 7), (31, NULL)")
    return spark.sql(f"{query} UNION ALL SELECT * FROM VALUES (30L, 7L), (31L, NULL)")


def updated_and_merged(spark: SparkSession, path: str) -> DataFrame:
    write_ids(spark, path, [10, 10], deletion_vectors=True)
    spark.sql(f"UPDATE delta.`{path}` SET id = id + 100 WHERE id IN (2, 12)")
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT * FROM VALUES (3), (13), (50) s(k)) s "
        "ON t.id = s.k WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, `x.y`) VALUES (s.k, concat('row ', s.k))"
    )
    kept = [(n, f"row {n}") for n in (*range(20), 50) if n not in (2, 3, 12, 13)]
    return spark.createDataFrame(
        [*kept, (102, "row 2"), (112, "row 12")], "id BIGINT, `x.y` STRING"
    )


SAMPLES: list[Sample] = [
    Sample("appended", appended),
    Sample("all types", all_types),
    Sample("odd partitions", odd_partitions),
    Sample(
        "negative decimal partitions",
        negative_decimal_partitions,
        delta_rs_fails=r"'?-?\d+\.-\d+'? (is not a valid decimal|as 'decimal)",
    ),
    Sample("rewritten", rewritten),
    Sample("overwritten", overwritten),
    Sample("created by select", created_by_select),
    Sample("inline vectors", inline_vectors, deletion_vectors=True),
    Sample("stored vectors", stored_vectors, deletion_vectors=True),
    Sample("merged vectors", merged_vectors, deletion_vectors=True),
    Sample("updated and merged", updated_and_merged, deletion_vectors=True),
]
