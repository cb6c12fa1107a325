"""Definitions that an Iceberg table can have (Protocol § Iceberg Compatibility V1 and V2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.exceptions import DeltaError
from tests.support.definitions import column, create, plan, schema, struct
from tests.support.memory_log import MemoryLog

V1 = {"delta.enableIcebergCompatV1": "true"}
V2 = {"delta.enableIcebergCompatV2": "true"}
NESTED = "parquet.field.nested.ids"


def array(element: Any) -> Any:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> Any:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def mapped(schema_string: str) -> dict[str, dict[str, Any]]:
    return {f["name"]: f["metadata"] for f in json.loads(schema_string)["fields"]}


def test_a_new_table_maps_its_columns_by_name_and_lists_the_features() -> None:
    planned = plan(MemoryLog(), properties=V1)
    assert planned.effective.metadata.configuration["delta.columnMapping.mode"] == "name"
    assert planned.effective.protocol.min_writer_version == 7
    features = planned.effective.protocol.writer_features
    assert features is not None and {"icebergCompatV1", "columnMapping"} <= features


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
    ],
)
def test_what_iceberg_could_not_have_is_refused(
    properties: dict[str, str], columns: tuple[Any, ...], reason: str
) -> None:
    log = MemoryLog()
    with pytest.raises(DeltaError, match=reason) as caught:
        plan(log, properties=properties, schema_string=schema(*columns))
    assert caught.value.condition == "DELTAIC_ICEBERG_COMPATIBILITY"


def test_the_supported_feature_of_vectors_goes_with_version_2() -> None:
    plan(MemoryLog(), properties={**V2, "delta.feature.deletionVectors": "supported"})


def test_a_replacement_keeps_the_names_of_partition_columns_but_not_their_types() -> None:
    log = create(enableIcebergCompatV2="true")
    assert log.header(log.table) is not None
    replaced: dict[str, Any] = {"mode": "overwrite", "options": {"overwriteschema": "true"}}
    plan(log, **replaced, schema_string=schema("a", "b"))
    partitioned = MemoryLog()
    planned = plan(partitioned, properties=V2, partition_by=("p",))
    lines = [
        json.dumps({"protocol": planned.effective.protocol.to_json()}),
        json.dumps({"metaData": planned.effective.metadata.to_json()}),
    ]
    partitioned.write_if_absent(0, lines)
    text = schema("id", column("p", "integer"))
    plan(partitioned, **replaced, schema_string=text, partition_by=("p",))
    with pytest.raises(DeltaError, match="partitioned by p"):
        plan(partitioned, **replaced, schema_string=text, partition_by=("id",))


def test_elements_keys_and_values_have_ids_of_their_own_as_in_the_protocols_example() -> None:
    """The columns of the example in Protocol § Iceberg Compatibility V2."""
    text = schema(
        column("col1", array(array("integer"))),
        column("col2", map_of("integer", array("integer"))),
        column("col3", map_of("integer", struct(column("subcol1", array("integer"))))),
    )
    metadata = plan(MemoryLog(), properties=V2, schema_string=text).effective.metadata
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


def test_a_replaced_column_of_the_same_type_keeps_the_ids_of_its_parts() -> None:
    log = MemoryLog()
    text = schema("id", column("a", array("long")), "p")
    first = plan(log, properties=V2, schema_string=text).effective
    log.write_if_absent(
        0,
        [
            json.dumps({"protocol": first.protocol.to_json()}),
            json.dumps({"metaData": first.metadata.to_json()}),
        ],
    )
    again = schema("new", column("a", array("long")))
    options = {"overwriteschema": "true"}
    second = plan(log, "overwrite", schema_string=again, options=options).effective.metadata
    before, after = mapped(first.metadata.schema_string), mapped(second.schema_string)
    assert after["a"] == before["a"]
    assert after["new"]["delta.columnMapping.id"] == 5
