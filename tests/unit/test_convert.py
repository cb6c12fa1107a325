"""What CONVERT TO DELTA commits besides files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commands.convert import CONVERT_SCHEMA
from deltaic.commands.registry import run_command
from deltaic.commit.parquet_source import ParquetRequest
from deltaic.commit.transaction import RetryPolicy
from deltaic.exceptions import InvalidArgumentError
from tests.support.definitions import column, command_arguments, create, schema
from tests.support.memory_log import MemoryLog

WIDENED = {"delta.typeChanges": [{"toType": "long", "fromType": "integer"}]}


def files_of(log: MemoryLog, *columns: Any, partition_by: tuple[str, ...] = ()) -> None:
    log.parquet.columns = schema(*columns)
    log.parquet.partition_columns = partition_by
    log.parquet.is_inferred = bool(partition_by)


def convert(log: MemoryLog, **changes: Any) -> list[dict[str, Any]]:
    arguments = command_arguments(log, "convertToDelta", **changes)
    response = run_command("convertToDelta", arguments, log, RetryPolicy(), lambda: 5_000)
    rows: list[dict[str, Any]] = response["rows"]
    return rows


def test_files_are_committed_as_the_first_version() -> None:
    log = MemoryLog()
    files_of(log, "id", column("p", "integer"), partition_by=("p",))
    row = {
        "num_converted_files": 2,
        "partitioned_by": "p INT",
        "partitioning_inferred": True,
    }
    assert convert(log) == [row]
    assert CONVERT_SCHEMA.count(",") == len(row) - 1
    assert [file.path for file in log.files()] == ["a.parquet", "b.parquet"]
    (info,) = log.actions(0, "commitInfo")
    assert info["operation"] == "CONVERT"
    assert info["operationParameters"] == {
        "numFiles": "2",
        "partitionedBy": '["p"]',
        "collectStats": "true",
        "sourceFormat": "parquet",
    }
    assert info["operationMetrics"] == {"numConvertedFiles": "2"}
    (metadata,) = log.actions(0, "metaData")
    assert metadata["partitionColumns"] == ["p"]
    assert log.parquet.request == ParquetRequest()


def test_table_of_the_catalog_gives_its_properties_and_comment() -> None:
    log = MemoryLog()
    log.defaults = {"delta.dataSkippingNumIndexedCols": "3", "delta.checkpointInterval": "7"}
    files_of(log, "id", "p")
    given = {"delta.checkpointInterval": "5", "owner": "me"}
    name = "`spark_catalog`.`default`.`t`"
    convert(
        log,
        entry={"catalogTable": name, "properties": given, "description": "rows"},
        collectStatistics=False,
        partitionSchema="{}",
    )
    expected = {"delta.dataSkippingNumIndexedCols": "3", **given}
    assert log.parquet.request == ParquetRequest(name, "{}", False, expected)
    (metadata,) = log.actions(0, "metaData")
    assert metadata["configuration"] == expected
    assert metadata["description"] == "rows"
    (info,) = log.actions(0, "commitInfo")
    assert info["operationParameters"]["catalogTable"] == name
    assert info["operationParameters"]["collectStats"] == "false"


def test_delta_table_is_left_alone() -> None:
    log = create()
    assert convert(log) == []
    assert log.version == 0
    assert log.parquet.request is None


def test_of_two_conversions_at_once_the_later_finds_a_table() -> None:
    log, other = MemoryLog(), MemoryLog()
    for one in (log, other):
        files_of(one, "id", "p")

    def win(version: int) -> None:
        if log.version < 0:
            log.before_try = lambda version: None
            other.commits_lines = log.commits_lines
            convert(other)

    log.before_try = win
    assert convert(log) == []
    assert log.version == 0
    assert len(log.files()) == 2


def test_types_that_differ_between_files_need_type_widening() -> None:
    log = MemoryLog()
    files_of(log, column("id", "long", metadata=WIDENED), "p")
    convert(log)
    (protocol,) = log.actions(0, "protocol")
    assert "typeWidening" in protocol["readerFeatures"]
    (metadata,) = log.actions(0, "metaData")
    assert metadata["configuration"] == {}
    assert json.loads(metadata["schemaString"])["fields"][0]["metadata"] == WIDENED


def test_column_that_needs_column_mapping_is_refused_with_advice() -> None:
    log = MemoryLog()
    files_of(log, "id", "a b")
    with pytest.raises(InvalidArgumentError, match=r"'a b'(.|\n)*withColumnRenamed") as raised:
        convert(log)
    assert raised.value.condition == "DELTAIC_CONVERT_COLUMN_NAME"
    assert log.version == -1


@pytest.mark.parametrize(
    ("defaults", "changes", "name"),
    [
        ({"columnMapping.mode": "name"}, {}, "delta.columnMapping.mode"),
        ({"columnMapping.mode": "id"}, {}, "delta.columnMapping.mode"),
        ({"enableIcebergCompatV2": "true"}, {}, "delta.enableIcebergCompatV2"),
        (
            {"feature.materializePartitionColumns": "supported"},
            {},
            "delta.feature.materializePartitionColumns",
        ),
        ({"enableRowTracking": "true"}, {"collectStatistics": False}, "delta.enableRowTracking"),
    ],
)
def test_property_that_the_files_do_not_meet_is_refused(
    defaults: dict[str, str], changes: dict[str, Any], name: str
) -> None:
    log = MemoryLog()
    log.defaults = {f"delta.{key}": value for key, value in defaults.items()}
    files_of(log, "id", "p", partition_by=("p",))
    with pytest.raises(InvalidArgumentError) as raised:
        convert(log, **changes)
    assert raised.value.condition == "DELTAIC_CONVERT_PROPERTY_UNMET"
    assert raised.value.parameters["property"] == name
    assert log.version == -1


def test_files_get_row_ids() -> None:
    log = MemoryLog()
    log.defaults = {"delta.enableRowTracking": "true"}
    files_of(log, "id", "p")
    convert(log)
    assert [file.base_row_id for file in log.files()] == [0, 10]


def test_partition_columns_are_shown_as_they_would_have_been_stated() -> None:
    log = MemoryLog()
    files_of(
        log,
        "id",
        column("a day", "date"),
        column("amount", "decimal(5,2)"),
        partition_by=("a day", "amount"),
    )
    with pytest.raises(InvalidArgumentError, match="'a day'"):
        convert(log)
    files_of(log, "id", column("größe", "decimal(5,2)"), partition_by=("größe",))
    assert convert(log)[0]["partitioned_by"] == "`größe` DECIMAL(5,2)"
