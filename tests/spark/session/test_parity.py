"""What both languages implement agrees: properties, features and names.

Python decides about the protocol, metadata, conflicts and plans; Scala about rows, files and
expressions. Some facts both need: Python to refuse or record something, Scala to read or write
rows without asking Python. Each pair shares its table as JSON, or has a test here.

============================  ==============================  ==================================
Python (`deltaic.protocol`)   Scala (`io.deltaic`)            fact
============================  ==============================  ==================================
features                      protocol.TableFeatures,         ``table-features.json``: features
                              FeatureUse                      that are supported, listed, active
properties                    protocol.TableProperties        ``table-properties.json``: values,
                                                              older names, numbers, durations
schema.folded_name            protocol.ColumnNames            names that differ only in case
change_data                   spark.changes                   feed is active; reserved names
row_tracking                  spark.schema.RowTracking        row tracking is active; its columns
in_commit_timestamps          replay.CommitTimes              timestamps are active, since when
constraints                   spark.schema.TableConditions    properties that are constraints
actions                       protocol.ActionJson             bodies of protocol and metaData
columns.*, schema             spark.schema, spark.write       see `test_column_parity`
session, unsupported,         spark.util, sql.command,        ``spark-versions.json``, ... alone
commands.rows, exceptions     protocol.DeltaicException
============================  ==============================  ==================================
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.protocol import change_data, in_commit_timestamps, row_tracking
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.columns import clustering, column_mapping, identity, type_widening
from deltaic.protocol.columns import column_expressions as expressions
from deltaic.protocol.columns.identity_high_water_marks import HIGH_WATER_MARK
from deltaic.protocol.constraints import constraint_properties
from deltaic.protocol.features import (
    all_features,
    features_in_use,
    is_enabled,
    is_listed,
    reader_features,
    supports,
    writer_features,
)
from deltaic.protocol.properties import (
    TableProperty,
    all_properties,
    interval_ms,
    is_true,
    property_value,
    spellings,
)
from deltaic.protocol.schema import Field, PrimitiveType, StructType, folded_name, write_schema
from tests.support.cases import drawn_cases
from tests.support.column_strategies import names, schemas
from tests.support.scala_objects import REFUSED, ScalaObjects, outcome
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

few_cases = drawn_cases(40, thorough=300)

EMPTY = write_schema(StructType())


@pytest.fixture(scope="module")
def scala(spark: SparkSession) -> ScalaObjects:
    return ScalaObjects(spark)


def cased(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return the texts as they are, in other cases, and with letters whose case is odd."""
    odd = {"s": "ſ", "S": "ſ", "k": "\u212a", "i": "İ"}
    changes = [str, str, str.upper, str.title, lambda text: "".join(odd.get(c, c) for c in text)]
    return st.builds(lambda text, change: change(text), texts, st.sampled_from(changes))


# Properties


amounts = st.sampled_from(
    ["1", "30", "0", "-1", "+2", "1.5", ".5", "1.", "-.25", "1e3", "1_0", "٣", "", "9" * 19, "."]
)
units = cased(
    st.sampled_from(
        [
            *("day", "days", "week", "hours", "minute", "second", "seconds", "millisecond"),
            *("microseconds", "month", "year", "dayss", "d", "", "s"),
        ]
    )
)
spaces = st.sampled_from([" ", " ", "  ", "\t", "\n", "", "\u00a0", "\x1c"])
durations = st.builds(
    lambda start, parts, end: start + "".join(f"{a}{s}{u}{e}" for a, s, u, e in parts) + end,
    st.sampled_from(["interval ", "", "INTERVAL ", " interval\t", "interval", "\u00a0"]),
    st.lists(st.tuples(amounts, spaces, units, spaces), max_size=3),
    st.sampled_from(["", " ", "x", "\u2003"]),
)
#: What a log may hold as a value, whichever engine wrote it.
values = st.one_of(
    cased(st.sampled_from(["true", "false", "name", "id", "none", "v2", "classic", "supported"])),
    st.sampled_from(["", " true", "false ", "0", "1", "-1", "-2", "+7", "007", " 5", "5 ", "٣"]),
    st.sampled_from(["1_0", "2147483647", "2147483648", "-2147483648", "1.0", "1e1", "x"]),
    durations,
)


@few_cases
@given(text=durations)
def test_durations(scala: ScalaObjects, text: str) -> None:
    assert interval_ms(text) == scala.value(scala["protocol.TableProperties"].intervalMs(text))


@few_cases
@given(known=st.sampled_from(all_properties()), data=st.data())
def test_values_of_properties(
    scala: ScalaObjects, known: TableProperty, data: st.DataObject
) -> None:
    stored = data.draw(
        st.dictionaries(st.sampled_from([*spellings(known.name), known.name.upper()]), values)
    )
    properties, configuration = scala["protocol.TableProperties"], scala.map_of(stored)
    found = scala.value(properties.value(configuration, known.name))
    assert property_value(stored, known.name) == (found or "")
    assert is_true(stored, known.name) == properties.isTrue(configuration, known.name)
    assert known.internal == properties.isInternal(known.name)
    if known.type == "int":
        valid = found is not None and known.problem_with(found) is None
        expected = int(found) if valid else None
        assert scala.value(properties.int(configuration, known.name)) == expected


@few_cases
@given(
    key=st.builds(
        str.__add__,
        cased(st.sampled_from(["delta.constraints.", "delta.constraint.", "delta.", ""])),
        names,
    )
)
def test_properties_that_are_constraints(scala: ScalaObjects, key: str) -> None:
    found = scala["spark.schema.TableConditions"].isConstraint(key)
    assert found == bool(constraint_properties({key: "true"}))


def test_constraint_of_another_spelling_is_enforced_as_in_delta_spark(
    spark: SparkSession, scala: ScalaObjects, tmp_path: Path
) -> None:
    columns = write_schema(StructType((Field("id", PrimitiveType("long")),)))
    constraint = {"Delta.Constraints.Positive": "id > 0"}
    scala.snapshot(tmp_path, Protocol(1, 3), Metadata("t", columns, configuration=constraint))
    table = f"delta.`{tmp_path}`"
    spark.sql(f"INSERT INTO {table} VALUES (1)")
    with pytest.raises(Exception, match="DELTAIC_CHECK_VIOLATED"):
        spark.sql(f"INSERT INTO {table} VALUES (-1)")
    assert rows_of(spark, str(tmp_path)) == [(1,)]


# Features


feature_names = cased(
    st.sampled_from([n for f in all_features() for n in (f.name, *f.aliases)] + ["unheardOf"])
)
feature_lists = st.none() | st.frozensets(feature_names, max_size=4)
protocols = st.builds(
    Protocol, st.integers(1, 4), st.integers(1, 8), feature_lists, feature_lists
) | st.builds(Protocol, st.just(3), st.just(7), feature_lists, feature_lists)
configurations = st.dictionaries(
    st.sampled_from(
        [n for f in all_features() if f.property_name for n in spellings(f.property_name)]
        + ["delta.constraints.c", "Delta.constraints.c", "delta.enablechangedatafeed"]
    ),
    values,
    max_size=3,
)
#: Keys of column metadata, some of which only look like those that use a feature.
used_keys = st.sampled_from(
    [k for f in all_features() for k in f.used_by.column_metadata if "*" not in k]
)
other_keys = st.sampled_from(
    ["comment", "type", "elementType", "delta.identity", "delta.identity.any", "metadata"]
)
texts = st.sampled_from(["x", "variant", "timestamp_ntz", "delta.invariants"])
nested = st.just({"delta.typeChanges": "x", "type": "variant", "metadata": {"__COLLATIONS": "1"}})
metadata_entries = st.builds(
    lambda used, other: {**used, **other},
    st.dictionaries(used_keys, texts, max_size=1),
    st.dictionaries(other_keys, texts | nested, max_size=2),
)


@st.composite
def definitions(draw: st.DrawFn) -> Metadata:
    first, *others = draw(schemas).fields
    columns = StructType((Field(first.name, first.type, True, draw(metadata_entries)), *others))
    return Metadata("t", write_schema(columns), (), draw(configurations))


@few_cases
@given(protocol=protocols, name=feature_names, metadata=definitions())
def test_features(scala: ScalaObjects, protocol: Protocol, name: str, metadata: Metadata) -> None:
    features = scala["protocol.TableFeatures"]
    action, definition = scala.protocol(protocol), scala.metadata(metadata)
    assert reader_features(protocol) == set(scala.value(features.readerFeaturesOf(action)))
    assert writer_features(protocol) == set(scala.value(features.writerFeaturesOf(action)))
    assert supports(protocol, name) == features.supports(action, name)
    assert is_listed(protocol, name) == features.isListed(action, name)
    in_use = features_in_use(metadata, "t")
    assert in_use == set(scala.value(features.inUse(definition)))
    assert is_enabled(protocol, metadata, name) == features.isEnabled(action, definition, name)


@pytest.mark.protocol("writer-addcdcfile-1", "writer-addcdcfile-3")
@few_cases
@given(protocol=protocols, properties=configurations, version=st.integers(0, 2**40))
def test_what_writers_must_record(
    scala: ScalaObjects, protocol: Protocol, properties: dict[str, str], version: int
) -> None:
    named = row_tracking.with_materialized_columns(properties, {})
    metadata = in_commit_timestamps.enabled_since(Metadata("t", EMPTY, (), named), version, 1)
    action, definition = scala.protocol(protocol), scala.metadata(metadata)
    feed = scala["spark.changes.ChangeFeed"].isRecorded(action, definition)
    assert change_data.writes_change_data_feed(protocol, metadata) == feed
    tracking = scala["spark.schema.RowTracking"].of(action, definition)
    assert row_tracking.is_enabled(protocol, metadata) == tracking.isDefined()
    if tracking.isDefined():
        assert row_tracking.has_materialized_column_names(metadata)
        assert tracking.get().materialized().size() == 2
    since = scala["replay.CommitTimes"].inCommitFrom(action, definition)
    active = in_commit_timestamps.is_active(protocol, metadata)
    assert since == (version if active else 2**63 - 1)


@pytest.mark.protocol("writer-addcdcfile-3")
def test_feed_without_its_feature_is_not_read(
    spark: SparkSession, scala: ScalaObjects, tmp_path: Path
) -> None:
    # Protocol § Add CDC File: writers respect the property only if the feature is supported.
    columns = write_schema(StructType((Field("id", PrimitiveType("long")),)))
    feed = {"delta.enableChangeDataFeed": "true"}
    without = Protocol(1, 7, None, frozenset({"appendOnly"}))
    scala.snapshot(tmp_path, without, Metadata("t", columns, configuration=feed))
    changes = spark.read.format("delta").option("readChangeFeed", True).option("startingVersion", 0)
    with pytest.raises(Exception, match="DELTAIC_CHANGES_NOT_RECORDED"):
        changes.load(str(tmp_path)).collect()


@few_cases
@given(protocol=protocols, metadata=definitions())
def test_actions(scala: ScalaObjects, protocol: Protocol, metadata: Metadata) -> None:
    bodies = scala["spark.commit.ActionBody"]
    sent = json.loads(bodies.write(scala.protocol(protocol)).toString())
    assert Protocol.from_json(sent) == protocol
    sent = json.loads(bodies.write(scala.metadata(metadata)).toString())
    assert Metadata.from_json(sent) == metadata


# Names


def test_every_letter_is_folded_alike(scala: ScalaObjects) -> None:
    # Letters of later versions of Unicode may be unknown to one side.
    category = unicodedata.ucd_3_2_0.category
    assigned = [c for c in map(chr, range(0x20, 0x11000)) if category(c)[0] != "C"]
    folded = scala["protocol.ColumnNames"].folded("".join(assigned))
    assert list(folded) == list(map(folded_name, assigned))


@few_cases
@given(name=names, other=names)
def test_names_are_equal_if_spark_says_so(scala: ScalaObjects, name: str, other: str) -> None:
    spark = scala.module("org.apache.spark.sql.catalyst.analysis.package")
    equal = spark.caseInsensitiveResolution().apply(name, other)
    assert (folded_name(name) == folded_name(other)) == equal


@few_cases
@given(name=cased(st.sampled_from(["_change_type", "_commit_version", "_commit_timestamp", "id"])))
def test_names_that_a_feed_reserves(scala: ScalaObjects, name: str) -> None:
    columns = StructType((Field(name, PrimitiveType("long")),))
    feed = {"delta.enableChangeDataFeed": "true"}
    read = outcome(scala["spark.changes.ChangeColumns"].addedTo, "t", scala.columns(columns), False)
    checked = outcome(change_data.check_feed_columns, "t", columns, feed)
    assert (read is REFUSED) == (checked is REFUSED)


#: The names that both sides spell out.
NAMES: list[tuple[str, str, str]] = [
    (expressions.DEFAULT, "spark.schema.ColumnKeys", "CurrentDefault"),
    (expressions.EXISTS_DEFAULT, "spark.schema.ColumnKeys", "ExistsDefault"),
    (expressions.INVARIANT, "spark.schema.ColumnKeys", "Invariant"),
    (expressions.GENERATED, "spark.schema.ColumnKeys", "GenerationExpression"),
    (identity.START, "spark.schema.ColumnKeys", "IdentityStart"),
    (identity.STEP, "spark.schema.ColumnKeys", "IdentityStep"),
    (HIGH_WATER_MARK, "spark.schema.ColumnKeys", "IdentityHighWaterMark"),
    (column_mapping.PHYSICAL_NAME, "spark.schema.PhysicalSchema", "PhysicalName"),
    (column_mapping.COLUMN_ID, "spark.schema.PhysicalSchema", "ColumnId"),
    (column_mapping.NESTED_IDS, "spark.schema.PhysicalSchema", "NestedIds"),
    (type_widening.TYPE_CHANGES, "spark.schema.SkippingSchema", "TypeChanges"),
    (clustering.DOMAIN, "spark.schema.ClusteringColumns", "Domain"),
]


@pytest.mark.protocol("writer-icebergcompatv2-5")
@pytest.mark.parametrize(("name", "scala_object", "member"), NAMES)
def test_names_of_the_protocol(
    scala: ScalaObjects, name: str, scala_object: str, member: str
) -> None:
    found: Any = getattr(scala[scala_object], member)()
    assert found == name
