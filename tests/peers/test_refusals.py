"""Statements that delta-spark refuses are refused here, too, and change nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cases import every
from tests.support.databases import own_database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

PLAIN = "CREATE TABLE {t} (id INT, x STRING) USING delta"
NESTED = (
    "CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: INT>, arr ARRAY<STRUCT<c: INT>>) USING delta"
)
REMAPPED = (
    PLAIN.replace("CREATE", "CREATE OR REPLACE")
    + " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
)
FEED = (
    "CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true',"
    " 'delta.enableInCommitTimestamps' = 'false')"
)
PARTIAL = "INSERT {verb} BY NAME {where} SELECT 1 AS id, named_struct('a', 1) AS s, array() AS arr"
CHECK = "ALTER TABLE {t} ADD CONSTRAINT c CHECK (%s)"
RETENTION = "delta.deletedFileRetentionDuration"
FILES, LOG = f"'{RETENTION}'", "'delta.logRetentionDuration'"

#: Statements before, the one that is refused, and our condition. SQL, or Python between backticks.
CASES: dict[str, tuple[list[str], str, str]] = {
    "reserved name": (
        [PLAIN],
        "ALTER TABLE {t} ADD CONSTRAINT __CHAR_VARCHAR_STRING_LENGTH_CHECK__ CHECK (id > 0)",
        "RESERVED_CONSTRAINT_NAME",
    ),
    "files longer than the log, created": (
        [],
        PLAIN + f" TBLPROPERTIES ({FILES} = 'interval 31 days')",
        "DELETED_FILE_RETENTION_TOO_LONG",
    ),
    "log shorter than files, created": (
        [],
        PLAIN + f" TBLPROPERTIES ({LOG} = 'interval 6 days')",
        "DELETED_FILE_RETENTION_TOO_LONG",
    ),
    "files longer than the log, altered": (
        [PLAIN],
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({FILES} = 'interval 30 days 1 second')",
        "DELETED_FILE_RETENTION_TOO_LONG",
    ),
    "both, altered": (
        [PLAIN],
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({LOG} = 'interval 40 days',"
        f" {FILES} = 'interval 41 days')",
        "DELETED_FILE_RETENTION_TOO_LONG",
    ),
    "files longer than the log, replaced": (
        [PLAIN],
        "CREATE OR REPLACE TABLE {t} (id INT) USING delta"
        f" TBLPROPERTIES ({FILES} = 'interval 40 days')",
        "DELETED_FILE_RETENTION_TOO_LONG",
    ),
    "files longer than the log, saved": (
        [],
        f"`spark.range(1).write.format('delta').option('{RETENTION}', 'interval 40 days')"
        ".saveAsTable(t)`",
        "DELETED_FILE_RETENTION_TOO_LONG",
    ),
    "field NOT NULL, added": (
        [PLAIN],
        "ALTER TABLE {t} ADD COLUMNS (s STRUCT<a: INT NOT NULL>)",
        "COLUMN_NOT_ADDED",
    ),
    "element NOT NULL, added": (
        [NESTED],
        "ALTER TABLE {t} ADD COLUMN s.c ARRAY<STRUCT<d: INT NOT NULL>>",
        "COLUMN_NOT_ADDED",
    ),
    "element NOT NULL, created": (
        [],
        "CREATE TABLE {t} (id INT, a ARRAY<STRUCT<b: INT NOT NULL>>) USING delta",
        "NESTED_NOT_NULL",
    ),
    "map key NOT NULL, created": (
        [],
        "CREATE TABLE {t} (id INT, m MAP<STRUCT<b: INT NOT NULL>, INT>) USING delta",
        "NESTED_NOT_NULL",
    ),
    "map value NOT NULL, replaced": (
        [PLAIN],
        "CREATE OR REPLACE TABLE {t} (id INT, s STRUCT<m: MAP<INT, STRUCT<b: INT NOT NULL>>>)"
        " USING delta",
        "NESTED_NOT_NULL",
    ),
    "element NOT NULL, columns replaced": (
        [PLAIN],
        "ALTER TABLE {t} REPLACE COLUMNS (id INT, x STRING, a ARRAY<STRUCT<b: INT NOT NULL>>)",
        "NESTED_NOT_NULL",
    ),
    "BY NAME without a field": (
        [NESTED],
        PARTIAL.replace("{verb}", "INTO {t}").replace("{where}", ""),
        "STRUCT_MISSING_FIELDS|CANNOT_FIND_DATA",
    ),
    "BY NAME without a field, overwrites": (
        [NESTED],
        PARTIAL.replace("{verb}", "OVERWRITE {t}").replace("{where}", ""),
        "STRUCT_MISSING_FIELDS|CANNOT_FIND_DATA",
    ),
    "BY NAME without a field, replaces": (
        [NESTED],
        PARTIAL.replace("{verb}", "INTO {t}").replace("{where}", "REPLACE WHERE id = 1"),
        "STRUCT_MISSING_FIELDS|CANNOT_FIND_DATA",
    ),
    "overwrite with a cast, without a column": (
        [PLAIN],
        "`spark.range(1).write.format('delta').mode('overwrite').saveAsTable(t)`",
        "ASSIGNMENT_REFUSED",
    ),
    "overwrite with a cast to text, without a column": (
        [PLAIN],
        "`spark.sql('SELECT 1 AS x').write.format('delta').mode('overwrite').saveAsTable(t)`",
        "ASSIGNMENT_REFUSED",
    ),
    "DataFrame of a table that got other physical names": (
        [PLAIN, "INSERT INTO {t} VALUES (1, 'a')", "`kept.update(df=spark.table(t))`", REMAPPED],
        "`kept['df'].collect()`",
        "SCHEMA_CHANGED",
    ),
    "endingVersion null": (
        [FEED],
        "`spark.read.option('readChangeFeed', 'true').option('startingVersion', '0')"
        ".options(endingVersion=None).table(t).collect()`",
        "CHANGES_OPTION_INVALID",
    ),
    "endingTimestamp null": (
        [FEED],
        "`spark.read.option('readChangeFeed', 'true').option('startingVersion', '0')"
        ".options(endingTimestamp=None).table(t).collect()`",
        "CHANGES_OPTION_INVALID",
    ),
    "end null": ([FEED], "SELECT * FROM table_changes('{t}', 0, NULL)", "FUNCTION_ARGUMENT"),
    "changes of files that may be gone": (
        [FEED, "INSERT INTO {t} VALUES (1)", "`age(t)`"],
        "`spark.read.option('readChangeFeed', 'true').option('startingVersion', '0')"
        ".table(t).collect()`",
        "VERSION_BEYOND_FILE_RETENTION",
    ),
    "two columns with one id": (
        [],
        "`spark.catalog.createTable(t, source='delta', schema=columns((1, 'p'), (1, 'q')),"
        " **{'delta.columnMapping.mode': 'name'})`",
        "DUPLICATE_COLUMN_MAPPING",
    ),
    "two columns with one physical name": (
        [],
        "`spark.catalog.createTable(t, source='delta', schema=columns((1, 'p'), (2, 'p')),"
        " **{'delta.columnMapping.mode': 'name'})`",
        "DUPLICATE_COLUMN_MAPPING",
    ),
    "createOrReplace keeps columns": (
        [PLAIN],
        "`spark.range(1).writeTo(t).using('delta').option('overwriteSchema', 'false')"
        ".createOrReplace()`",
        "INVALID_WRITE_OPTION",
    ),
    "replace keeps columns": (
        [PLAIN],
        "`spark.range(1).writeTo(t).using('delta').option('overwriteSchema', 'false').replace()`",
        "INVALID_WRITE_OPTION",
    ),
    "CREATE OR REPLACE keeps columns": (
        [PLAIN],
        "CREATE OR REPLACE TABLE {t} (z INT) USING delta OPTIONS ('overwriteSchema' = 'false')",
        "INVALID_WRITE_OPTION",
    ),
}

#: Runs the cases and returns what each was refused with; or None, or that the table has changed.
RUN = """
import os, time
from pyspark.sql.types import IntegerType, StructField, StructType

def age(table):
    location = spark.sql(f"DESCRIBE DETAIL {table}").collect()[0].location.removeprefix("file:")
    for version, days in ((0, 40), (1, 1)):
        then = time.time() - days * 86400
        os.utime(f"{location}/_delta_log/{version:020d}.json", (then, then))
    spark.sql(f"REFRESH TABLE {table}")

def columns(*mapping):
    keys = ("delta.columnMapping.id", "delta.columnMapping.physicalName")
    named = [dict(zip(keys, values)) for values in mapping]
    return StructType([StructField(f"c{n}", IntegerType(), True, m) for n, m in enumerate(named)])

def run(statement, table):
    if statement.startswith("`"):
        eval(statement.strip("`"), {**known, "t": table})
    else:
        spark.sql(statement.replace("{t}", table)).collect()

def version(table):
    exists = spark.catalog.tableExists(table)
    return spark.sql(f"DESCRIBE HISTORY {table}").first().version if exists else None

result = {}
known = {"spark": spark, "age": age, "columns": columns, "kept": {}}
for number, (name, (before, refused, _)) in enumerate(cases.items()):
    t = f"{database}.t{number}"
    for statement in before:
        run(statement, t)
    found = version(t)
    try:
        run(refused, t)
        result[name] = None
    except Exception as problem:
        same = version(t) == found
        result[name] = str(problem) if same else f"the table has changed since version {found}"
"""

#: How delta-spark says what it refuses.
CAUSE = re.compile(
    r"^\[DELTA_\w+\]"
    r"|The table property delta\.\w+RetentionDuration\(.*\) needs to be (less|greater) than"
    r"|^Found duplicated (column id|physical name)"
)


@pytest.mark.drawn
def test_statements_are_refused_as_by_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path
) -> None:
    location = f"spark.sql(\"CREATE DATABASE refusals LOCATION '{tmp_path}'\"); result = None"
    delta_spark.run(location)
    selected = dict(every(3, CASES.items()))
    theirs = delta_spark.run(RUN, cases=selected, database="refusals")
    assert {name: found for name, found in theirs.items() if not CAUSE.search(str(found))} == {}
    scope: dict[str, Any] = {"spark": spark, "cases": selected, "database": "refusals"}
    with own_database(spark, "refusals"):
        exec(RUN, scope)
    ours = scope["result"]
    wrong = {
        name: ours[name]
        for name, (_, _, condition) in selected.items()
        if ours[name] is None or not any(c in ours[name] for c in condition.split("|"))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("users(id) > 0", "users is a function of the session, and other sessions"),
        ("id > limit_of_session", "limit_of_session is a variable of the session, and other"),
        ("upper(x) = 'A'", None),
        ("len_of(id) > 0", "len_of is a function of the session|UNSUPPORTED_SQL_UDF_USAGE"),
    ],
)
def test_check_takes_nothing_of_the_session(
    spark: SparkSession, condition: str, message: str | None
) -> None:
    """delta-spark accepts these, and then writes no row that another session could check."""
    spark.udf.register("users", lambda value: value, "int")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION len_of(v INT) RETURNS INT RETURN v + 1")
    spark.sql("DECLARE OR REPLACE VARIABLE limit_of_session INT DEFAULT 1")
    t = "checks.t"
    with own_database(spark, "checks"):
        spark.sql(PLAIN.replace("{t}", t))
        add = CHECK.replace("{t}", t) % condition
        create = (
            f"CREATE TABLE {t}2 (id INT, x STRING, CONSTRAINT c CHECK ({condition})) USING delta"
        )
        for statement in (add, create):
            if message is None:
                spark.sql(statement)
                continue
            with pytest.raises(Exception, match=message):
                spark.sql(statement)
    spark.sql("DROP TEMPORARY FUNCTION len_of")
    spark.sql("DROP TEMPORARY VARIABLE limit_of_session")
    spark.sql("DROP TEMPORARY FUNCTION users")
