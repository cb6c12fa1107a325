"""Properties among the options of a write into a table that exists."""

from __future__ import annotations

import logging

import pytest

from tests.support.definitions import create, plan


def test_property_that_a_write_into_a_table_does_not_set_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = create(appendOnly="true")
    given = {"delta.appendOnly": "True", "delta.checkpointInterval": "7", "owner": "me"}
    with caplog.at_level(logging.WARNING, "deltaic"):
        for _ in range(2):
            assert not plan(log, properties=given).changes_metadata
    (record,) = caplog.records
    assert "does not set the property delta.checkpointInterval = 7" in record.getMessage()


@pytest.mark.parametrize(
    ("stored", "given", "warnings"),
    [
        ({"enableChangeDataFeed": "true"}, {"delta.enableChangeDataCapture": "true"}, []),
        ({"constraints.c": "id > 0"}, {"delta.constraints.C": "id > 0"}, []),
        ({"constraints.c": "p = 'a'"}, {"DELTA.Constraints.c": "p = 'A'"}, ["ADD CONSTRAINT"]),
        ({}, {"Delta.Constraints.d": "id > 0"}, ["ADD CONSTRAINT"]),
        ({}, {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}, []),
        ({}, {"DELTA.feature.deletionVectors": "supported"}, []),
        ({}, {"Delta.DataSkippingNumIndexedCols": "7"}, ["SET TBLPROPERTIES"]),
        (
            {},
            {"deltaic.deletionVectors.maxDeletedRowsRatio": "0.3"},
            ["SET TBLPROPERTIES"],
        ),
    ],
)
def test_properties_of_a_write_are_compared_in_the_spelling_of_tables(
    stored: dict[str, str],
    given: dict[str, str],
    warnings: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = create(**stored)
    with caplog.at_level(logging.WARNING, "deltaic"):
        plan(log, properties=given)
    statements = [
        record.getMessage().rpartition(" ... ")[2].rstrip(".") for record in caplog.records
    ]
    assert statements == warnings
