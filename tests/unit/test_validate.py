"""The validator finds invalid actions of a commit, and nothing in valid commits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.protocol.validation.log import parse_commit, validate_log
from deltaic.protocol.validation.log_state import Action

PROTOCOL: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
FEATURES: dict[str, Any] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors", "domainMetadata", "rowTracking"],
}


def metadata(
    partition_by: tuple[str, ...] = (), properties: dict[str, str] | None = None
) -> dict[str, Any]:
    fields: list[dict[str, Any]] = [
        {"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("id", "p")
    ]
    return {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": list(partition_by),
        "configuration": properties or {},
    }


def add(path: str, **changes: Any) -> Action:
    body = {
        "path": path,
        "partitionValues": {},
        "size": 10,
        "modificationTime": 1,
        "dataChange": True,
        "stats": '{"numRecords":10}',
    }
    return "add", {**body, **changes}


def remove(path: str, **changes: Any) -> Action:
    return "remove", {"path": path, "dataChange": True, **changes}


def vector(cardinality: int = 3) -> dict[str, Any]:
    return {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": cardinality,
    }


def mark(row_id: int) -> Action:
    body = {"domain": "delta.rowTracking", "configuration": json.dumps({"highWaterMark": row_id})}
    return "domainMetadata", body


def row_ids(first: int) -> dict[str, int]:
    return {"baseRowId": first, "defaultRowCommitVersion": 0}


DEFINITION: list[Action] = [("protocol", PROTOCOL), ("metaData", metadata())]
TRACKED: list[Action] = [("protocol", FEATURES), ("metaData", metadata())]


@pytest.mark.protocol("change-metadata-1", "change-metadata-3")
@pytest.mark.protocol("consistency-between-table-metadata-and-data-files-2", "deletion-vectors-1")
@pytest.mark.protocol("dv-step-3-dml-with-existing-dvs-3", "per-file-statistics-1")
@pytest.mark.protocol("protocol-evolution-2", "requirements-for-writers-delta-log-entries-1")
@pytest.mark.protocol("requirements-for-writers-delta-log-entries-3")
@pytest.mark.protocol("requirements-for-writers-delta-log-entries-4", "row-tracking-1")
@pytest.mark.protocol("supported-features-3", "table-features-3")
@pytest.mark.protocol("table-features-for-new-and-existing-tables-1")
@pytest.mark.protocol("writer-requirement-for-deletion-vectors-1", "writer-row-tracking-10")
@pytest.mark.protocol("writer-row-tracking-11", "writer-row-tracking-2", "writer-row-tracking-22")
@pytest.mark.protocol("writer-row-tracking-8", "writer-row-tracking-9")
@pytest.mark.parametrize(
    ("commits", "detail"),
    [
        ([], None),
        ([DEFINITION, [add("a")], [remove("a"), add("b")]], None),
        ([TRACKED, [mark(9), add("a", **row_ids(0))]], None),
        (
            [
                [*TRACKED, mark(9), add("a", **row_ids(0))],
                [remove("a"), add("a", deletionVector=vector(), **row_ids(0))],
            ],
            None,
        ),
        ([[("protocol", PROTOCOL)]], "there is no metaData"),
        ([[("metaData", metadata())]], "there is no protocol"),
        ([[*DEFINITION, ("protocol", PROTOCOL)]], "2 actions protocol"),
        ([DEFINITION, [add("a"), add("a")]], "2 actions add a"),
        ([DEFINITION, [("txn", {"appId": "x"}), ("txn", {"appId": "x"})]], "2 actions txn x"),
        ([DEFINITION, [remove("a")]], "a is removed, but is not in the table"),
        ([DEFINITION, [add("a")], [add("a")]], "a is added, but is in the table"),
        ([TRACKED, [add("a", **row_ids(0))]], "a: row ID 9 is above the high water mark -1"),
        ([TRACKED, [mark(9), add("a")]], "a has no baseRowId or defaultRowCommitVersion"),
        (
            [[*TRACKED, mark(9)], [mark(5), remove("b")]],
            "the high water mark falls from 9 to 5",
        ),
        (
            [[*TRACKED, mark(9), add("a", **row_ids(0))], [mark(19), add("b", **row_ids(5))]],
            "b: baseRowId 5 is not above the high water mark 9",
        ),
        (
            [[*TRACKED, mark(9), add("a", **row_ids(0))], [add("a", deletionVector=vector())]],
            "a is in the table with 2 deletion vectors",
        ),
        (
            [DEFINITION, [add("a", deletionVector=vector())]],
            "a has a deletion vector, but the table does not support them",
        ),
        (
            [TRACKED, [mark(9), add("a", deletionVector=vector(11), **row_ids(0))]],
            "a: 11 of 10 rows are deleted",
        ),
        (
            [TRACKED, [mark(9), add("a", stats="{}", deletionVector=vector(), **row_ids(0))]],
            "a has a deletion vector, but no numRecords",
        ),
        ([DEFINITION, [add("a", size="10")]], "a: size is '10'"),
        (
            [[("protocol", PROTOCOL), ("metaData", metadata(("p",))), add("a")]],
            "a: partitionValues {}, partition columns ['p']",
        ),
        (
            [[("protocol", PROTOCOL), ("metaData", metadata(("nowhere",)))]],
            "partition columns without a column: ['nowhere']",
        ),
        (
            [
                [
                    ("protocol", PROTOCOL),
                    ("metaData", metadata(properties={"delta.enableDeletionVectors": "true"})),
                ]
            ],
            "in use, but not supported by the protocol: deletionVectors",
        ),
        (
            [[("protocol", {**FEATURES, "writerFeatures": []}), ("metaData", metadata())]],
            "only among the readerFeatures: deletionVectors",
        ),
        (
            [[("protocol", {**PROTOCOL, "minWriterVersion": 7}), ("metaData", metadata())]],
            "writer version 7, writerFeatures None",
        ),
        (
            [
                [
                    (
                        "protocol",
                        {
                            **PROTOCOL,
                            "minWriterVersion": 7,
                            "writerFeatures": ["inCommitTimestamp"],
                        },
                    ),
                    ("metaData", metadata(properties={"delta.enableInCommitTimestamps": "true"})),
                ]
            ],
            "the first action is not commitInfo",
        ),
    ],
)
def test_each_rule_is_checked(commits: list[list[Action]], detail: str | None) -> None:
    found = [v.detail for v in validate_log(enumerate(commits))]
    assert (found == []) if detail is None else (detail in found)


@pytest.mark.protocol("add-cdc-file-2", "writer-addcdcfile-1")
def test_change_files_belong_to_a_feed_and_lie_in_their_folder() -> None:
    feed: list[Action] = [
        ("protocol", {**PROTOCOL, "minWriterVersion": 4}),
        ("metaData", metadata(("p",), {"delta.enableChangeDataFeed": "true"})),
    ]
    cdc = {"path": "_change_data/p=1/c", "partitionValues": {"p": "1"}, "size": 1}
    right: Action = ("cdc", {**cdc, "dataChange": False})
    assert validate_log([(0, feed), (1, [right])]) == []
    wrong = {**cdc, "path": "c", "partitionValues": {}, "size": None, "dataChange": True}
    for definition, action, problems in ((DEFINITION, right, 2), (feed, ("cdc", wrong), 4)):
        assert len(validate_log([(0, definition), (1, [action])])) == problems


def test_gap_between_versions_is_found() -> None:
    (violation,) = validate_log([(0, DEFINITION), (2, [add("a")])])
    assert str(violation).startswith("version 2: it follows version 0")


def test_in_commit_timestamps_must_ascend() -> None:
    definition: list[Action] = [
        ("commitInfo", {"inCommitTimestamp": 5}),
        ("protocol", {**PROTOCOL, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}),
        ("metaData", metadata(properties={"delta.enableInCommitTimestamps": "true"})),
    ]
    commits: list[list[Action]] = [definition, [("commitInfo", {"inCommitTimestamp": 5})]]
    (violation,) = validate_log(enumerate(commits))
    assert violation.detail == "5 is not after 5"


def test_commit_is_parsed_line_by_line() -> None:
    assert parse_commit('{"add":{"path":"a"}}\n\n{"txn":{"appId":"x"}}\n') == [
        ("add", {"path": "a"}),
        ("txn", {"appId": "x"}),
    ]


ENABLED = {"delta.enableInCommitTimestamps": "true"}
SINCE = {
    "delta.inCommitTimestampEnablementVersion": "1",
    "delta.inCommitTimestampEnablementTimestamp": "5",
}


@pytest.mark.parametrize(
    ("since", "problems"),
    [
        (SINCE, 0),
        ({}, 1),
        ({**SINCE, "delta.inCommitTimestampEnablementVersion": "0"}, 1),
        ({**SINCE, "delta.inCommitTimestampEnablementTimestamp": "4"}, 1),
    ],
)
def test_commit_that_enables_timestamps_later_says_since_when(
    since: dict[str, str], problems: int
) -> None:
    protocol = {**PROTOCOL, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    commits: list[list[Action]] = [
        [("commitInfo", {}), ("protocol", protocol), ("metaData", metadata())],
        [
            ("commitInfo", {"inCommitTimestamp": 5}),
            ("metaData", metadata(properties={**ENABLED, **since})),
        ],
        [("commitInfo", {"inCommitTimestamp": 6})],
    ]
    assert len(validate_log(enumerate(commits))) == problems


def test_enabled_row_tracking_names_its_columns() -> None:
    properties = {"delta.enableRowTracking": "true"}
    commit = [("protocol", FEATURES), ("metaData", metadata(properties=properties))]
    (problem,) = validate_log([(0, commit)])
    assert "columns of preserved row IDs" in problem.detail


CLUSTERED: dict[str, Any] = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["clustering", "domainMetadata"],
}


def clustered_by(*columns: list[str]) -> Action:
    configuration = json.dumps({"clusteringColumns": columns})
    body = {"domain": "delta.clustering", "configuration": configuration, "removed": False}
    return "domainMetadata", body


@pytest.mark.protocol("writer-clustered-table-1", "writer-clustered-table-3")
@pytest.mark.protocol("writer-clustered-table-6")
@pytest.mark.parametrize(
    ("actions", "details"),
    [
        ([("metaData", metadata()), clustered_by()], []),
        ([("metaData", metadata())], ["nothing says"]),
        ([("metaData", metadata(("p",))), clustered_by(["id"])], ["partitioned"]),
        ([("metaData", metadata()), clustered_by(["id"]), add("a")], ["no statistics of id"]),
        (
            [
                ("metaData", metadata()),
                clustered_by(["id"]),
                add("a", stats='{"numRecords":1,"nullCount":{"id":0}}'),
            ],
            [],
        ),
    ],
)
def test_clustered_table_says_its_columns_and_has_their_statistics(
    actions: list[Action], details: list[str]
) -> None:
    found = validate_log([(0, [("protocol", CLUSTERED), *actions])])
    assert [any(d in str(v) for d in details) for v in found] == [True] * len(details)


@pytest.mark.protocol("writer-domain-metadata-4")
def test_feature_without_one_that_it_requires_is_found() -> None:
    alone = {**CLUSTERED, "writerFeatures": ["clustering"]}
    found = validate_log([(0, [("protocol", alone), ("metaData", metadata()), clustered_by()])])
    assert "clustering is supported without domainMetadata" in str(found[0])


@pytest.mark.protocol("writer-column-mapping-10", "writer-column-mapping-11")
@pytest.mark.protocol("writer-column-mapping-14")
def test_mapped_columns_have_ids_of_their_own_within_those_given() -> None:
    def mapped(*ids: int | None) -> dict[str, Any]:
        columns = [
            {
                "name": f"c{n}",
                "type": "long",
                "nullable": True,
                "metadata": {}
                if number is None
                else {
                    "delta.columnMapping.id": number,
                    "delta.columnMapping.physicalName": f"p{n}",
                },
            }
            for n, number in enumerate(ids)
        ]
        properties = {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": "2",
        }
        schema = json.dumps({"type": "struct", "fields": columns})
        return {**metadata(properties=properties), "schemaString": schema}

    def problems(*ids: int | None) -> list[str]:
        protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
        actions: list[Action] = [("protocol", protocol), ("metaData", mapped(*ids))]
        return [str(violation) for violation in validate_log([(0, actions)])]

    assert problems(2, 1) == []
    assert ["share the id 1" in text for text in problems(1, 1)] == [True]
    assert ["maxColumnId is 2" in text for text in problems(1, 3)] == [True]
    assert ["c1 has the id None" in text for text in problems(1, None)] == [True]


def with_stats(path: str, **kinds: Any) -> Action:
    return add(path, stats=json.dumps({"numRecords": 10, **kinds}))


def of_columns(*names: str, mode: str | None = None) -> dict[str, Any]:
    """Return a metaData of columns that files know as `f0`, `f1` and so on, if they are mapped."""
    fields = [
        {
            "name": name,
            "type": {"type": "struct", "fields": [dict(FIELD, name="x")]}
            if name == "s"
            else "long",
            "nullable": True,
            "metadata": {"delta.columnMapping.id": n, "delta.columnMapping.physicalName": f"f{n}"},
        }
        for n, name in enumerate(names)
    ]
    properties = {"delta.columnMapping.mode": str(mode), "delta.columnMapping.maxColumnId": "9"}
    return {
        **metadata(properties=properties if mode else {}),
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
    }


FIELD: dict[str, Any] = {
    "type": "long",
    "nullable": True,
    "metadata": {"delta.columnMapping.id": 8, "delta.columnMapping.physicalName": "fx"},
}
MAPPED: Action = ("protocol", {"minReaderVersion": 2, "minWriterVersion": 5})


@pytest.mark.parametrize(
    ("stats", "detail"),
    [
        (
            {"minValues": {"id": 1}, "maxValues": {"s": {"x": 2}}, "nullCount": {"s": {"x": 0}}},
            None,
        ),
        ({"nullCount": {"gone": 0}}, "nullCount of gone, which is no column"),
        ({"minValues": {"s": {"y": 1}}}, "minValues of s.y, which is no column"),
        (
            {"maxValues": {"id": {"x": 1}}},
            "maxValues of id has fields, which the column does not have",
        ),
        ({"nullCount": 3}, "nullCount is 3"),
    ],
)
def test_statistics_are_about_columns_of_the_schema(
    stats: dict[str, Any], detail: str | None
) -> None:
    definition: list[Action] = [("protocol", PROTOCOL), ("metaData", of_columns("id", "s"))]
    found = [v.detail for v in validate_log([(0, definition), (1, [with_stats("a", **stats)])])]
    assert (found[:1] == []) if detail is None else (found[0] == f"a: {detail}")


@pytest.mark.protocol("writer-column-mapping-8")
def test_statistics_name_mapped_columns_as_files_do() -> None:
    for name, problems in (("f1", 0), ("s", 1)):
        written = with_stats("a", nullCount={name: {"fx": 0} if name == "f1" else 0})
        definition = [MAPPED, ("metaData", of_columns("id", "s", mode="name"))]
        assert len(validate_log([(0, definition), (1, [written])])) == problems


def test_file_that_was_there_keeps_statistics_of_a_dropped_column() -> None:
    old = with_stats("a", nullCount={"f1": 0})
    commits: list[list[Action]] = [
        [MAPPED, ("metaData", of_columns("id", "p", mode="name"))],
        [old],
        [("metaData", of_columns("id", mode="name"))],
        [remove("a"), old],
    ]
    assert validate_log(enumerate(commits)) == []
    (violation,) = validate_log(enumerate([*commits, [with_stats("b", nullCount={"f1": 0})]]))
    assert violation.detail == "b: nullCount of f1, which is no column"


@pytest.mark.protocol("writer-row-tracking-1", "writer-row-tracking-22", "writer-row-tracking-3")
@pytest.mark.parametrize(
    ("commits", "detail"),
    [
        ([[mark(19), add("a", **row_ids(0)), add("b", **row_ids(9))]], "row ID 9 is in a, too"),
        ([[mark(19), add("a", **row_ids(10)), add("b", **row_ids(0))]], None),
        (
            [[mark(9), add("a", **row_ids(0))], [remove("a"), add("a", **row_ids(10))]],
            "a: baseRowId is 10, but was 0",
        ),
    ],
)
def test_no_two_rows_get_the_same_id(commits: list[list[Action]], detail: str | None) -> None:
    found = [str(v) for v in validate_log(enumerate([TRACKED, *commits]))]
    assert (found == []) if detail is None else (detail in found[0])


def test_rows_that_are_there_may_get_their_first_ids_later() -> None:
    commits: list[list[Action]] = [
        [*DEFINITION, add("a")],
        [("protocol", FEATURES)],
        [mark(9), add("a", dataChange=False, **row_ids(0))],
    ]
    assert validate_log(enumerate(commits)) == []


APPEND_ONLY = metadata(properties={"delta.appendOnly": "true"})


@pytest.mark.parametrize(
    ("protocol", "data_change", "problems"),
    [
        (PROTOCOL, True, 1),
        (PROTOCOL, False, 0),
        # Of a table that does not support the feature, the property asks nothing.
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": []}, True, 1),
    ],
)
def test_append_only_table_loses_no_rows(
    protocol: dict[str, Any], data_change: bool, problems: int
) -> None:
    commits: list[list[Action]] = [
        [("protocol", protocol), ("metaData", APPEND_ONLY), add("a")],
        [remove("a", dataChange=data_change)],
    ]
    found = validate_log(enumerate(commits))
    assert len(found) == problems
    if protocol is PROTOCOL and data_change:
        assert found[0].detail == "a is removed with rows that count"


@pytest.mark.protocol("domain-metadata-4", "domain-metadata-5")
def test_domains_need_their_feature() -> None:
    (violation,) = validate_log([(0, [*DEFINITION, mark(1)])])
    assert "says something of delta.rowTracking" in violation.detail


def test_application_moves_on() -> None:
    def at(app: str, version: int) -> list[Action]:
        return [("txn", {"appId": app, "version": version})]

    commits = [DEFINITION, at("x", 3), at("y", 1), at("x", 4)]
    assert validate_log(enumerate(commits)) == []
    for version in (3, 4):
        (violation,) = validate_log(enumerate([*commits, at("x", version)]))
        assert violation.detail == f"x is at {version}, but was at 4"


@pytest.mark.parametrize(("updated_ms", "count"), [(1999, 1), (2000, 0), (None, 1)])
def test_application_starts_again_after_the_retention_of_its_txn(
    updated_ms: int | None, count: int
) -> None:
    properties = {"delta.setTransactionRetentionDuration": "interval 1 second"}
    definition = [("protocol", PROTOCOL), ("metaData", metadata(properties=properties))]
    commits: list[list[Action]] = [
        [*definition, ("txn", {"appId": "x", "version": 3, "lastUpdated": 1000})],
        [("txn", {"appId": "x", "version": 3, "lastUpdated": updated_ms})],
    ]
    assert len(validate_log(enumerate(commits))) == count
