"""Definitions that an Iceberg table can have (Protocol § Iceberg Compatibility V1 and V2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commands.alter.table_properties import AlterProperties, alter_properties
from deltaic.commit.ports import IncompatibleFile
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import DeltaError, MetadataChangedException
from deltaic.protocol.columns.type_widening import widens, widens_in_iceberg
from deltaic.protocol.schema import PrimitiveType
from tests.support.definitions import column, create, plan, schema, struct, write
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog

V1 = {"delta.enableIcebergCompatV1": "true"}
V2 = {"delta.enableIcebergCompatV2": "true"}
V3 = {"delta.enableIcebergCompatV3": "true"}
NESTED = "parquet.field.nested.ids"


DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}


def default(sql: str) -> Any:
    return column("d", "string", metadata={"CURRENT_DEFAULT": sql})


def array(element: Any) -> Any:
    return {"type": "array", "elementType": element, "containsNull": True}


UDT = {"type": "udt", "class": "a.PointUDT", "sqlType": "long"}


def map_of(key: Any, value: Any) -> Any:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def mapped(schema_string: str) -> dict[str, dict[str, Any]]:
    return {f["name"]: f["metadata"] for f in json.loads(schema_string)["fields"]}


@pytest.mark.protocol("iceberg-compatibility-v1-2", "iceberg-compatibility-v1-3")
def test_a_new_table_maps_its_columns_by_name_and_lists_the_features() -> None:
    planned = plan(MemoryLog(), properties=V1)
    assert planned.definition.metadata.configuration["delta.columnMapping.mode"] == "name"
    assert planned.definition.protocol.min_writer_version == 7
    features = planned.definition.protocol.writer_features
    assert features is not None and {"icebergCompatV1", "columnMapping"} <= features


@pytest.mark.protocol("writer-icebergcompatv1-1", "writer-icebergcompatv1-2")
@pytest.mark.protocol("writer-icebergcompatv1-6", "writer-icebergcompatv2-1")
@pytest.mark.protocol("writer-icebergcompatv2-12", "writer-icebergcompatv2-7")
@pytest.mark.protocol("writer-icebergcompatv2-8")
@pytest.mark.parametrize(
    ("properties", "columns", "reason"),
    [
        ({**V1, "delta.columnMapping.mode": "none"}, ("a",), "columnMapping.mode"),
        ({**V1, "delta.enableDeletionVectors": "true"}, ("a",), "deletionVectors"),
        ({**V1, "delta.feature.deletionVectors": "supported"}, ("a",), "deletionVectors"),
        (V1, (column("a", array("long")), "b"), "column a"),
        (V1, (column("s", struct(column("m", map_of("long", "long")))), "b"), "column s.m"),
        ({**V2, "delta.columnMapping.mode": "none"}, ("a",), "columnMapping.mode"),
        ({**V2, "delta.enableDeletionVectors": "true"}, ("a",), "enableDeletionVectors"),
        ({**V2, **V1}, ("a",), "enableIcebergCompatV1"),
        (V2, (column("a", array("variant")), "b"), "variant"),
        (V1, (column("a", UDT), "b"), "PointUDT"),
        (V2, (column("a", array(UDT)), "b"), "PointUDT"),
        ({**V3, "delta.columnMapping.mode": "none"}, ("a",), "columnMapping.mode"),
        ({**V3, "delta.enableRowTracking": "false"}, ("a",), "enableRowTracking"),
        ({**V3, **V1}, ("a",), "enableIcebergCompatV1"),
        ({**V3, **V2}, ("a",), "enableIcebergCompatV2"),
        (V3, (column("a", array("void")), "b"), "void"),
        (V3, (column("a", array(UDT)), "b"), "PointUDT"),
        ({**V3, **DEFAULTS}, (default("current_date()"), "b"), r"no literal: current_date\(\)"),
        ({**V3, **DEFAULTS}, (default("1 + 1"), "b"), "no literal"),
        ({**V3, **DEFAULTS}, (default("'a' || 'b'"), "b"), "no literal"),
    ],
)
def test_what_iceberg_could_not_have_is_refused(
    properties: dict[str, str], columns: tuple[Any, ...], reason: str
) -> None:
    log = MemoryLog()
    with pytest.raises(DeltaError, match=reason) as caught:
        plan(log, properties=properties, schema_string=schema(*columns))
    assert caught.value.condition == "DELTAIC_ICEBERG_COMPATIBILITY"


@pytest.mark.parametrize(
    "sql",
    ["1", "-2.5e3", "'it''s'", '"x"', "DATE '2024-01-01'", "X'00ff'", " true ", "NULL", "10L"],
)
def test_version_3_needs_row_tracking_and_allows_literals_as_defaults(sql: str) -> None:
    columns = schema(default(sql), column("v", array("variant")))
    planned = plan(MemoryLog(), properties={**V3, **DEFAULTS}, schema_string=columns)
    configuration = planned.definition.metadata.configuration
    assert configuration["delta.enableRowTracking"] == "true"
    assert configuration["delta.columnMapping.mode"] == "name"
    features = planned.definition.protocol.writer_features
    assert features is not None
    assert {"icebergCompatV3", "rowTracking", "domainMetadata", "columnMapping"} <= features
    assert mapped(planned.definition.metadata.schema_string)["v"][NESTED]


@pytest.mark.protocol("writer-icebergcompatv2-8")
def test_the_supported_feature_of_vectors_goes_with_version_2() -> None:
    plan(MemoryLog(), properties={**V2, "delta.feature.deletionVectors": "supported"})


@pytest.mark.protocol("writer-icebergcompatv1-7", "writer-icebergcompatv1-8")
@pytest.mark.protocol("writer-icebergcompatv2-13", "writer-icebergcompatv2-14")
def test_a_replacement_keeps_the_names_of_partition_columns_but_not_their_types() -> None:
    log = create(enableIcebergCompatV2="true")
    assert log.snapshot(log.table) is not None
    replaced: dict[str, Any] = {"mode": "overwrite", "options": {"overwriteschema": "true"}}
    plan(log, **replaced, schema_string=schema("a", "b"))
    partitioned = MemoryLog()
    planned = plan(partitioned, properties=V2, partition_by=("p",))
    lines = [
        json.dumps({"protocol": planned.definition.protocol.to_json()}),
        json.dumps({"metaData": planned.definition.metadata.to_json()}),
    ]
    partitioned.write_if_absent(0, lines)
    text = schema("id", column("p", "integer"))
    plan(partitioned, **replaced, schema_string=text, partition_by=("p",))
    with pytest.raises(DeltaError, match="partitioned by p"):
        plan(partitioned, **replaced, schema_string=text, partition_by=("id",))


@pytest.mark.protocol("writer-icebergcompatv2-2", "writer-icebergcompatv2-3")
@pytest.mark.protocol("writer-icebergcompatv2-4", "writer-icebergcompatv2-5")
def test_elements_keys_and_values_have_ids_of_their_own_as_in_the_protocols_example() -> None:
    """The columns of the example in Protocol § Iceberg Compatibility V2."""
    text = schema(
        column("col1", array(array("integer"))),
        column("col2", map_of("integer", array("integer"))),
        column("col3", map_of("integer", struct(column("subcol1", array("integer"))))),
    )
    metadata = plan(MemoryLog(), properties=V2, schema_string=text).definition.metadata
    fields = json.loads(metadata.schema_string)["fields"]
    subcol1 = fields[2]["type"]["valueType"]["fields"][0]
    names = [f["metadata"]["delta.columnMapping.physicalName"] for f in [*fields, subcol1]]
    col1, col2, col3, sub = names
    nested = [f["metadata"][NESTED] for f in [*fields, subcol1]]
    assert [list(ids) for ids in nested] == [
        [f"{col1}.element", f"{col1}.element.element"],
        [f"{col2}.key", f"{col2}.value", f"{col2}.value.element"],
        [f"{col3}.key", f"{col3}.value"],
        [f"{sub}.element"],
    ]
    of_columns = [f["metadata"]["delta.columnMapping.id"] for f in [*fields, subcol1]]
    of_parts = [i for ids in nested for i in ids.values()]
    assert sorted([*of_columns, *of_parts]) == list(range(1, 13))
    assert metadata.configuration["delta.columnMapping.maxColumnId"] == "12"


@pytest.mark.protocol("writer-icebergcompatv2-3")
def test_a_replaced_column_of_the_same_type_keeps_the_ids_of_its_parts() -> None:
    log = MemoryLog()
    text = schema("id", column("a", array("long")), "p")
    first = plan(log, properties=V2, schema_string=text).definition
    log.write_if_absent(
        0,
        [
            json.dumps({"protocol": first.protocol.to_json()}),
            json.dumps({"metaData": first.metadata.to_json()}),
        ],
    )
    again = schema("new", column("a", array("long")))
    options = {"overwriteschema": "true"}
    second = plan(log, "overwrite", schema_string=again, options=options).definition.metadata
    before, after = mapped(first.metadata.schema_string), mapped(second.schema_string)
    assert after["a"] == before["a"]
    assert after["new"]["delta.columnMapping.id"] == 5


MAPPED = {"delta.columnMapping.mode": "name"}
OFF = {"delta.enableIcebergCompatV1": "false"}


def existing(properties: dict[str, str], *columns: Any) -> MemoryLog:
    """Return a table without files."""
    log = MemoryLog()
    first = plan(log, properties=properties, schema_string=schema(*columns)).definition
    lines = [
        json.dumps({"protocol": first.protocol.to_json()}),
        json.dumps({"metaData": first.metadata.to_json()}),
    ]
    log.write_if_absent(0, lines)
    return log


def alter(log: MemoryLog, given: dict[str, str]) -> None:
    alter_properties(AlterProperties(log.table, given), log, RetryPolicy(), lambda: 1)


def changed(older: str, newer: str) -> dict[str, Any]:
    return {"delta.typeChanges": [{"fromType": older, "toType": newer}]}


@pytest.mark.protocol("iceberg-compatibility-v1-1", "iceberg-compatibility-v1-2")
@pytest.mark.protocol("iceberg-compatibility-v1-3", "iceberg-compatibility-v2-1")
@pytest.mark.protocol("iceberg-compatibility-v2-2", "iceberg-compatibility-v2-3")
@pytest.mark.parametrize("given", [V1, V2, {**V1, **MAPPED}, {**V2, **MAPPED}])
def test_a_table_becomes_compatible_where_columns_are_mapped_or_will_be(
    given: dict[str, str],
) -> None:
    log = existing({} if MAPPED.items() <= given.items() else MAPPED, "id", "p")
    alter(log, given)
    (protocol,) = log.actions(1, "protocol")
    feature = "icebergCompatV1" if V1.items() <= given.items() else "icebergCompatV2"
    assert {"columnMapping", feature} <= set(protocol["writerFeatures"])
    assert protocol["minWriterVersion"] == 7


@pytest.mark.protocol("writer-icebergcompatv2-2", "writer-icebergcompatv2-5")
def test_elements_of_columns_that_are_there_are_numbered_after_all_columns() -> None:
    log = existing(MAPPED, column("a", array(array("long"))), "id")
    before = mapped(log.actions(0, "metaData")[0]["schemaString"])
    alter(log, V2)
    (after,) = log.actions(1, "metaData")
    name = before["a"]["delta.columnMapping.physicalName"]
    nested = {NESTED: {f"{name}.element": 3, f"{name}.element.element": 4}}
    assert mapped(after["schemaString"]) == {"a": {**before["a"], **nested}, "id": before["id"]}
    assert after["configuration"]["delta.columnMapping.maxColumnId"] == "4"


@pytest.mark.protocol("writer-icebergcompatv2-7")
def test_one_version_is_exchanged_for_the_other() -> None:
    log = existing(V1, "id", "p")
    with pytest.raises(DeltaError, match="enableIcebergCompatV1 must not be true"):
        alter(log, V2)
    alter(log, {**V2, **OFF})
    configuration = log.actions(1, "metaData")[0]["configuration"]
    assert {**V2, **OFF}.items() <= configuration.items()


@pytest.mark.protocol("writer-icebergcompatv1-1", "writer-icebergcompatv1-2")
@pytest.mark.protocol("writer-icebergcompatv1-6", "writer-icebergcompatv2-1")
@pytest.mark.protocol("writer-icebergcompatv2-12", "writer-icebergcompatv2-8")
@pytest.mark.parametrize(
    ("properties", "columns", "given", "reason"),
    [
        ({}, ("id",), V1, "columnMapping.mode"),
        ({}, ("id",), V2, "columnMapping.mode"),
        ({**MAPPED, "delta.enableDeletionVectors": "true"}, ("id",), V1, "deletionVectors"),
        ({**MAPPED, "delta.enableDeletionVectors": "true"}, ("id",), V2, "enableDeletionVectors"),
        (MAPPED, (column("a", array("long")), "id"), V1, "column a"),
        (MAPPED, (column("v", "variant"), "id"), V2, "column v"),
        (MAPPED, (column("d", "double", metadata=changed("long", "double")),), V2, "column d"),
    ],
)
def test_a_table_that_iceberg_could_not_have_stays_as_it_is(
    properties: dict[str, str], columns: tuple[Any, ...], given: dict[str, str], reason: str
) -> None:
    log = existing(properties, *columns)
    with pytest.raises(DeltaError, match=reason) as caught:
        alter(log, given)
    assert caught.value.condition == "DELTAIC_ICEBERG_COMPATIBILITY"
    assert log.version == 0


def test_a_file_that_does_not_fit_is_named() -> None:
    log = existing(MAPPED, "id")
    log.unfit = IncompatibleFile("part-1.parquet", "partitionColumn")
    with pytest.raises(DeltaError, match=r"part-1\.parquet: it does not hold") as caught:
        alter(log, V1)
    assert caught.value.condition == "DELTAIC_ICEBERG_FILES"
    alter(log, {"delta.appendOnly": "true"})


@pytest.mark.parametrize("data_change", [True, False], ids=["overwrite", "compaction"])
def test_files_that_come_while_others_are_looked_at_are_a_conflict(data_change: bool) -> None:
    log = existing(MAPPED, "id", "p")
    write(log, MemoryFile("one"))

    def race(version: int) -> None:
        log.before_try = lambda _: None
        adds = [MemoryFile("two")]
        operation = "WRITE" if data_change else "OPTIMIZE"
        change = MemoryCommit(log, operation, removes=["one"], adds=adds, data_change=data_change)
        commit(change, log)

    log.before_try = race
    with pytest.raises(MetadataChangedException, match="added files"):
        alter(log, V1)
    assert [file.path for file in log.files()] == ["two"]


@pytest.mark.parametrize(
    ("older", "newer", "is_read"),
    [
        ("byte", "long", True),
        ("float", "double", True),
        ("decimal(5,2)", "decimal(9,2)", True),
        ("decimal(5,2)", "decimal(9,3)", False),
        ("integer", "double", False),
        ("long", "decimal(20,0)", False),
        ("date", "timestamp_ntz", False),
    ],
)
def test_iceberg_reads_only_some_wider_types(older: str, newer: str, is_read: bool) -> None:
    """As in Iceberg's own list of promotions (Iceberg table spec § Schema Evolution)."""
    types = PrimitiveType(older), PrimitiveType(newer)
    assert widens(*types)
    assert widens_in_iceberg(*types) == is_read
