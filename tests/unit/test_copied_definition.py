"""Which parts of a table's definition another table takes over."""

from __future__ import annotations

import json

import pytest

from deltaic.commands.definitions.copied_definition import copied_definition
from deltaic.protocol.actions import Metadata, Protocol
from tests.support.definitions import column, schema

METADATA = Metadata(
    id="source",
    schema_string=schema(
        column(
            "id",
            metadata={"comment": "c", "delta.identity.start": 1, "delta.identity.highWaterMark": 9},
        ),
        column("n", metadata={"delta.typeChanges": [{"fromType": "short", "toType": "long"}]}),
    ),
    configuration={
        "delta.appendOnly": "true",
        "delta.columnMapping.maxColumnId": "2",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
        "delta.constraints.positive": "id > 0",
        "owner": "me",
    },
)


@pytest.mark.protocol("writer-row-tracking-14")
def test_history_and_what_the_log_keeps_for_itself_stay_behind() -> None:
    copied = copied_definition(Protocol(1, 2), METADATA)
    fields = json.loads(copied.schema_string)["fields"]
    assert [f["metadata"] for f in fields] == [{"comment": "c", "delta.identity.start": 1}, {}]
    assert copied.constraints == {"positive": "id > 0"}
    assert copied.properties == {"delta.appendOnly": "true", "owner": "me"}
    assert copied.protocol_properties == {
        "delta.minReaderVersion": "1",
        "delta.minWriterVersion": "2",
    }


def test_features_that_the_table_lists_are_copied() -> None:
    features = frozenset({"deletionVectors", "appendOnly"})
    copied = copied_definition(Protocol(3, 7, frozenset({"deletionVectors"}), features), METADATA)
    assert copied.protocol_properties == {
        "delta.feature.appendOnly": "supported",
        "delta.feature.deletionVectors": "supported",
    }
