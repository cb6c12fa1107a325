"""Statements log printable text, whatever the values are, and the names that users gave."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.jvm_log import jvm_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Control characters, which a partition may have as its value, and bytes that are not UTF-8.
_CONTROLS = [bytes([0, 1, 0x1B, 0x7F]), b"\x08", b"\r\x0b\x0c", b"\xc2\x85"]
_BYTES = [bytes([0, 1, 0x1B, 0x7F]), b"\xff\xfe\x80", b"\x80", b"\xc3\x28\r"]

#: With which a reader decodes bytes that are not UTF-8.
_NO_TEXT = "\N{REPLACEMENT CHARACTER}"


@pytest.fixture
def name(spark: SparkSession) -> Iterator[str]:
    yield "binary_keys"
    spark.sql("DROP TABLE IF EXISTS binary_keys")


def _is_binary(line: str) -> bool:
    return any((unicodedata.category(c) == "Cc" and c != "\t") or c == _NO_TEXT for c in line)


def _literal(key: bytes) -> str:
    return f"X'{key.hex()}'"


@pytest.mark.parametrize("partitioned", [False, True], ids=["column", "partition"])
def test_statements_on_binary_values_log_no_bytes(
    spark: SparkSession, name: str, partitioned: bool
) -> None:
    keys = [_literal(key) for key in (_CONTROLS if partitioned else _BYTES)]
    first, *others = keys
    rows = ", ".join(f"({key}, {i}, {_literal(_BYTES[i])})" for i, key in enumerate(keys))
    statements = [
        f"CREATE TABLE {name} (key BINARY, id INT, other BINARY NOT NULL) USING delta"
        + (" PARTITIONED BY (key)" if partitioned else "")
        + " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',"
        " 'delta.enableChangeDataFeed' = 'true')",
        f"INSERT INTO {name} VALUES {rows}",
        f"SELECT * FROM {name} WHERE key = {first}",
        f"SELECT * FROM {name} WHERE other IN ({first}, {others[0]}) OR key > {others[1]}",
        f"SELECT count(*), max(other) FROM {name} GROUP BY key",
        f"SELECT * FROM {name} a JOIN {name} b ON a.key = b.other WHERE b.key = {first}",
        f"UPDATE {name} SET other = {first}, id = id + 10 WHERE other = {others[0]}",
        f"MERGE INTO {name} USING (SELECT {others[1]} AS key) s ON {name}.key = s.key"
        f" WHEN MATCHED AND other = {others[1]} THEN UPDATE SET other = {first}"
        f" WHEN NOT MATCHED THEN INSERT (key, id, other) VALUES (s.key, 7, s.key)",
        f"DELETE FROM {name} WHERE key = {others[0]}",
        f"DELETE FROM {name} WHERE other = {first} AND id > 5",
        f"INSERT INTO {name} REPLACE WHERE key = {first} VALUES ({first}, 9, {first})",
        f"SELECT * FROM table_changes('{name}', 1) WHERE key = {first}",
        f"ALTER TABLE {name} ADD CONSTRAINT c CHECK (other != X'01FF')",
        f"DESCRIBE HISTORY {name}",
        f"DESCRIBE DETAIL {name}",
        f"INSERT OVERWRITE {name} VALUES ({first}, 1, {first})",
    ]
    with jvm_log(spark) as lines:
        for statement in statements:
            spark.sql(statement).collect()
        for refused in [
            f"INSERT INTO {name} VALUES ({first}, 1, X'01FF')",
            f"INSERT INTO {name} VALUES ({first}, 1, CAST(NULL AS BINARY))",
            f"INSERT INTO {name} REPLACE WHERE other = {first} VALUES (X'0001', 1, X'00FE')",
            f"MERGE INTO {name} USING (VALUES ({first}), ({first}) AS s(key)) ON {name}.key = s.key"
            f" WHEN MATCHED THEN UPDATE SET other = {first}",
        ]:
            with pytest.raises(Exception, match=r"DELTAIC|MERGE_CARDINALITY"):
                spark.sql(refused).collect()
    assert len([line for line in lines if name in line]) > 100
    assert [line for line in lines if _is_binary(line)] == []
    assert [line for line in lines if "write support io.deltaic" in line] == []
