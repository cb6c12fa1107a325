"""Which protocol a table gets, and which tables this build may write to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaic.exceptions import InvalidArgumentError, ProtocolError
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import (
    all_features,
    features_in_use,
    find_feature,
    is_listed,
    reader_features,
    require_writable,
    supported_features,
    supports,
    writer_features,
)
from deltaic.protocol.negotiation import protocol_for_new_definition, protocol_for_new_table
from deltaic.protocol.properties import ProtocolRequest, check_properties
from tests.support.definitions import column, schema

PLAIN = schema("id")


def negotiate(schema_string: str = PLAIN, **properties: str) -> Protocol:
    checked = check_properties("/t", {f"delta.{n}": v for n, v in properties.items()})
    metadata = Metadata("id", schema_string, configuration=checked.configuration)
    return protocol_for_new_table("/t", metadata, checked.request)


def features(protocol: Protocol) -> tuple[set[str] | None, set[str] | None]:
    def names(listed: frozenset[str] | None) -> set[str] | None:
        return None if listed is None else set(listed)

    return names(protocol.reader_features), names(protocol.writer_features)


DEFAULTS = {"appendOnly", "invariants"}


def test_plain_table_gets_the_default_versions() -> None:
    assert negotiate() == Protocol(1, 2)


@pytest.mark.protocol("append-only-tables-1", "deletion-vectors-1")
@pytest.mark.protocol("partition-value-serialization-1", "primitive-types-4")
@pytest.mark.protocol("protocol-evolution-2", "reader-version-1", "row-tracking-2")
@pytest.mark.protocol("supported-features-4", "table-features-1")
@pytest.mark.protocol("table-features-for-new-and-existing-tables-2")
@pytest.mark.protocol("table-features-for-new-and-existing-tables-3")
@pytest.mark.protocol("timestamp-without-timezone-timestampntz-1")
@pytest.mark.protocol("timestamp-without-timezone-timestampntz-2", "writer-domain-metadata-4")
@pytest.mark.parametrize(
    ("schema_string", "properties", "versions", "readers", "writers"),
    [
        (PLAIN, {"appendOnly": "true"}, (1, 2), None, None),
        (
            PLAIN,
            {"enableDeletionVectors": "true"},
            (3, 7),
            {"deletionVectors"},
            {"deletionVectors", *DEFAULTS},
        ),
        (PLAIN, {"enableDeletionVectors": "false"}, (1, 2), None, None),
        (
            schema("id", column("t", "timestamp_ntz")),
            {},
            (3, 7),
            {"timestampNtz"},
            {"timestampNtz", *DEFAULTS},
        ),
        (
            schema(
                column("l", {"type": "array", "elementType": "timestamp_ntz", "containsNull": True})
            ),
            {},
            (3, 7),
            {"timestampNtz"},
            {"timestampNtz", *DEFAULTS},
        ),
        (PLAIN, {"enableChangeDataFeed": "true"}, (1, 7), None, {"changeDataFeed", *DEFAULTS}),
        (PLAIN, {"columnMapping.mode": "name"}, (2, 7), None, {"columnMapping", *DEFAULTS}),
        (PLAIN, {"minWriterVersion": "4"}, (1, 4), None, None),
        (
            PLAIN,
            {"minReaderVersion": "2", "minWriterVersion": "5"},
            (2, 5),
            None,
            None,
        ),
        (PLAIN, {"minWriterVersion": "7"}, (1, 7), None, DEFAULTS),
        (PLAIN, {"minReaderVersion": "3", "minWriterVersion": "7"}, (3, 7), set(), DEFAULTS),
        (PLAIN, {"ignoreProtocolDefaults": "true"}, (1, 1), None, None),
        (
            PLAIN,
            {"feature.rowTracking": "supported"},
            (1, 7),
            None,
            {"rowTracking", "domainMetadata", *DEFAULTS},
        ),
        (
            PLAIN,
            {"feature.deletionvectors": "enabled"},
            (3, 7),
            {"deletionVectors"},
            {"deletionVectors", *DEFAULTS},
        ),
    ],
)
def test_protocol_of_a_new_table(
    schema_string: str,
    properties: dict[str, str],
    versions: tuple[int, int],
    readers: set[str] | None,
    writers: set[str] | None,
) -> None:
    protocol = negotiate(schema_string, **properties)
    assert (protocol.min_reader_version, protocol.min_writer_version) == versions
    assert features(protocol) == (readers, writers)


def test_name_is_found_by_each_spelling_whatever_its_case() -> None:
    """As in Scala: TableFeaturesSuite asks the same."""
    for feature in all_features():
        for spelling in {feature.name, *feature.aliases}:
            for written in (spelling, spelling.upper(), spelling.lower()):
                assert find_feature(written) is feature
    assert find_feature("somethingNew") is None


@pytest.mark.parametrize(
    ("listed", "name"),
    [
        ("timestampNTZ", "timestampNtz"),
        ("columnInvariants", "invariants"),
        ("variantType-preview", "variantType"),
        ("DeletionVectors", "deletionVectors"),
    ],
)
def test_feature_that_is_listed_under_an_older_spelling_is_not_listed_again(
    listed: str, name: str
) -> None:
    protocol = Protocol(3, 7, frozenset({listed}), frozenset({listed}))
    assert supports(protocol, name)
    request = ProtocolRequest(features=(name,))
    after = protocol_for_new_definition("t", protocol, Metadata("id", PLAIN), request)
    assert after is protocol


MAPPING = frozenset({"columnMapping"})


@pytest.mark.protocol("column-mapping-1")
@pytest.mark.parametrize(
    ("protocol", "supported", "listed"),
    [
        (Protocol(2, 5), True, True),
        (Protocol(3, 7, MAPPING, MAPPING), True, True),
        (Protocol(1, 6), False, False),
        (Protocol(2, 4), False, True),
        (Protocol(1, 7, None, MAPPING), False, True),
        (Protocol(3, 7, frozenset(), MAPPING), False, True),
        (Protocol(3, 7, MAPPING, frozenset()), False, True),
        (Protocol(3, 7, frozenset(), frozenset()), False, False),
    ],
)
def test_feature_is_supported_where_both_sides_say_so_and_listed_where_one_does(
    protocol: Protocol, supported: bool, listed: bool
) -> None:
    assert supports(protocol, "columnMapping") is supported
    assert is_listed(protocol, "columnMapping") is listed


@pytest.mark.parametrize(
    ("draft", "final"),
    [
        # Their count is in an action of its own, not in the domain of row tracking.
        ("rowIds", "rowTracking"),
        ("delta.rowIds", "rowTracking"),
        # It is enabled by a property of another name.
        ("inCommitTimestamp-preview", "inCommitTimestamp"),
    ],
)
def test_feature_whose_draft_is_another_one_is_refused_by_its_name(draft: str, final: str) -> None:
    protocol = Protocol(1, 7, None, frozenset({draft}))
    assert not supports(protocol, final)
    with pytest.raises(ProtocolError, match=draft):
        require_writable("t", 0, protocol, Metadata("id", PLAIN))


def test_feature_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="no table feature warpDrive"):
        negotiate(**{"feature.warpDrive": "supported"})


@pytest.mark.protocol("append-only-tables-2", "clustered-table-1", "column-invariants-1")
@pytest.mark.protocol("default-columns-2", "iceberg-compatibility-v1-1")
@pytest.mark.protocol("iceberg-compatibility-v2-1", "iceberg-compatibility-v2-2")
@pytest.mark.protocol("reader-version-1", "row-tracking-2", "supported-features-3")
@pytest.mark.protocol("supported-features-4", "table-features-1", "table-features-2")
@pytest.mark.protocol("table-features-3", "table-features-for-new-and-existing-tables-1")
@pytest.mark.protocol("table-features-for-new-and-existing-tables-2")
@pytest.mark.protocol("table-features-for-new-and-existing-tables-3")
@pytest.mark.protocol("timestamp-without-timezone-timestampntz-1", "v2-checkpoint-table-feature-1")
@pytest.mark.protocol("v2-checkpoint-table-feature-2", "writer-column-mapping-3")
@settings(deadline=None)
@given(st.sets(st.sampled_from([f.name for f in all_features()])), st.booleans())
def test_any_set_of_features_makes_a_protocol_that_the_specification_allows(
    names: set[str], ignore_defaults: bool
) -> None:
    properties = {f"feature.{name}": "supported" for name in names}
    if ignore_defaults:
        properties["ignoreProtocolDefaults"] = "true"
    protocol = negotiate(**properties)
    # Protocol § Supported Features: a reader feature is listed on both sides, none on one only.
    assert names <= writer_features(protocol)
    assert reader_features(protocol) <= writer_features(protocol)
    assert (protocol.reader_features is not None) == (protocol.min_reader_version == 3)
    assert (protocol.writer_features is not None) == (protocol.min_writer_version == 7)
    assert protocol.min_reader_version < 3 or protocol.min_writer_version == 7
    for name in writer_features(protocol):
        feature = find_feature(name)
        assert feature is not None
        assert set(feature.requires) <= writer_features(protocol)
        assert feature.reads == (name in reader_features(protocol))


def test_new_definition_keeps_a_protocol_that_suffices() -> None:
    current = Protocol(1, 4)
    metadata = Metadata("id", PLAIN, configuration={"delta.appendOnly": "true"})
    request = check_properties("/t", {}).request
    assert protocol_for_new_definition("/t", current, metadata, request) is current


@pytest.mark.protocol("column-invariants-1", "table-features-for-new-and-existing-tables-5")
@pytest.mark.protocol("table-features-for-new-and-existing-tables-6")
def test_new_definition_adds_a_feature_and_keeps_all_others() -> None:
    metadata = Metadata("id", PLAIN, configuration={"delta.enableDeletionVectors": "true"})
    request = check_properties("/t", {}).request
    upgraded = protocol_for_new_definition("/t", Protocol(1, 4), metadata, request)
    assert upgraded.min_reader_version == 3
    assert upgraded.reader_features == frozenset({"deletionVectors"})
    # Protocol § Table Features for New and Existing Tables: assume that all were used.
    assert writer_features(upgraded) == writer_features(Protocol(1, 4)) | {"deletionVectors"}


@pytest.mark.protocol("column-invariants-1", "default-columns-3", "generated-columns-1")
@pytest.mark.protocol("identity-columns-2")
@pytest.mark.parametrize(
    ("metadata", "used"),
    [
        (schema(column("a", metadata={"delta.invariants": "{}"})), {"invariants"}),
        (schema(column("a", metadata={"delta.generationExpression": "b"})), {"generatedColumns"}),
        (schema(column("a", metadata={"delta.identity.start": 1})), {"identityColumns"}),
        (schema(column("a", metadata={"CURRENT_DEFAULT": "1"})), {"allowColumnDefaults"}),
        (schema("a"), set()),
    ],
)
def test_feature_is_in_use_by_the_metadata_of_a_column(metadata: str, used: set[str]) -> None:
    assert features_in_use(Metadata("id", metadata), "/t") == used


@pytest.mark.protocol("check-constraints-1")
@pytest.mark.parametrize(
    ("configuration", "used"),
    [
        ({"delta.constraints.positive": "id > 0"}, {"checkConstraints"}),
        ({"delta.columnMapping.mode": "NAME"}, {"columnMapping"}),
        ({"delta.columnMapping.mode": "none"}, set()),
        ({"delta.enableRowTracking": "true"}, {"rowTracking"}),
    ],
)
def test_feature_is_in_use_by_a_property(configuration: dict[str, str], used: set[str]) -> None:
    assert features_in_use(Metadata("id", PLAIN, configuration=configuration), "/t") == used


@pytest.mark.protocol("protocol-evolution-6")
@pytest.mark.parametrize(
    ("protocol", "schema_string", "configuration"),
    [
        (Protocol(1, 2), PLAIN, {}),
        (Protocol(1, 4), PLAIN, {}),
        (Protocol(2, 6), PLAIN, {}),
        (Protocol(1, 7, None, frozenset({"checkConstraints", "inCommitTimestamp"})), PLAIN, {}),
        (
            Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"})),
            PLAIN,
            {"delta.enableDeletionVectors": "true"},
        ),
        (Protocol(1, 3), PLAIN, {"delta.constraints.c": "id > 0"}),
        (Protocol(1, 2), schema(column("a", metadata={"delta.invariants": "{}"})), {}),
        (Protocol(1, 4), schema(column("a", metadata={"delta.generationExpression": "1"})), {}),
        (Protocol(1, 6), schema(column("a", metadata={"delta.identity.step": 1})), {}),
        # In use, but not supported by the protocol: then it is not active.
        (Protocol(1, 2), PLAIN, {"delta.enableChangeDataFeed": "true"}),
        (Protocol(1, 1), PLAIN, {"delta.enableIcebergCompatV2": "true"}),
        # Other writers list draft names.
        (Protocol(1, 7, None, frozenset({"columnInvariants", "CheckConstraints"})), PLAIN, {}),
    ],
)
def test_table_that_can_be_written(
    protocol: Protocol, schema_string: str, configuration: dict[str, str]
) -> None:
    require_writable("/t", 5, protocol, Metadata("id", schema_string, configuration=configuration))


@pytest.mark.protocol("supported-features-1", "table-features-4", "table-features-6")
@pytest.mark.parametrize(
    ("protocol", "schema_string", "configuration", "named"),
    [
        (Protocol(1, 7, None, frozenset({"collations"})), PLAIN, {}, "collations"),
        (Protocol(1, 7, None, frozenset({"warpDrive"})), PLAIN, {}, "warpDrive"),
        (
            Protocol(1, 7, None, frozenset({"icebergWriterCompatV1"})),
            PLAIN,
            {"delta.enableIcebergWriterCompatV1": "true"},
            "icebergWriterCompatV1",
        ),
    ],
)
def test_table_with_a_feature_this_build_cannot_write_is_refused_by_name(
    protocol: Protocol, schema_string: str, configuration: dict[str, str], named: str
) -> None:
    metadata = Metadata("id", schema_string, configuration=configuration)
    with pytest.raises(ProtocolError) as caught:
        require_writable("/t", 5, protocol, metadata)
    assert caught.value.condition == "DELTAIC_UNSUPPORTED_WRITER_FEATURE"
    assert caught.value.parameters == {"table": "/t", "version": "5", "features": named}


@pytest.mark.protocol("protocol-evolution-1", "protocol-evolution-6")
def test_writer_version_of_the_future_is_refused() -> None:
    with pytest.raises(ProtocolError, match="writer version 8"):
        require_writable("/t", 5, Protocol(1, 8), Metadata("id", PLAIN))


@pytest.mark.protocol("table-features-3")
def test_writer_version_with_features_that_lists_none_is_refused() -> None:
    with pytest.raises(ProtocolError, match="writer version 7 without writerFeatures"):
        require_writable("/t", 5, Protocol(1, 7), Metadata("id", PLAIN))


@pytest.mark.protocol("change-metadata-2")
def test_protocol_and_metadata_are_written_as_they_were_read() -> None:
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["appendOnly", "deletionVectors"],
    }
    assert Protocol.from_json(protocol).to_json() == protocol
    metadata = {
        "id": "af23c9d7-fff1-4a5a-a2c8-55c59bd782aa",
        "name": "n",
        "description": "d",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": PLAIN,
        "partitionColumns": ["id"],
        "configuration": {"appendOnly": "true"},
        "createdTime": 5,
    }
    assert Metadata.from_json(metadata).to_json() == metadata


@pytest.mark.protocol("append-only-tables-1", "identity-columns-1")
@pytest.mark.parametrize(
    ("protocol", "names"),
    [
        (Protocol(1, 2), {"appendOnly", "invariants"}),
        # Of column mapping, the reader version must tell, too.
        (
            Protocol(1, 6),
            {
                "appendOnly",
                "changeDataFeed",
                "checkConstraints",
                "generatedColumns",
                "identityColumns",
                "invariants",
            },
        ),
        (
            Protocol(2, 5),
            {
                "appendOnly",
                "changeDataFeed",
                "checkConstraints",
                "columnMapping",
                "generatedColumns",
                "invariants",
            },
        ),
        (Protocol(2, 7, None, frozenset({"appendOnly"})), {"appendOnly"}),
        (Protocol(2, 7, None, frozenset({"columnMapping"})), {"columnMapping"}),
        # What a list names is a feature of the table, if the other side lacks it, too.
        (Protocol(1, 7, None, frozenset({"columnMapping"})), {"columnMapping"}),
        (Protocol(3, 7, frozenset({"unheard"}), frozenset({"own"})), {"own", "unheard"}),
    ],
)
def test_features_of_a_table_are_those_listed_and_those_both_versions_imply(
    protocol: Protocol, names: set[str]
) -> None:
    assert supported_features(protocol) == names
