"""The validator finds what a commit should not say, and nothing in commits that are right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.protocol.validate import Action, parse_commit, validate_log

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
        ([TRACKED, [add("a", **row_ids(0))]], "a: row id 9 is above the high water mark -1"),
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
    assert "columns of preserved row ids" in problem.detail


CLUSTERED: dict[str, Any] = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["clustering", "domainMetadata"],
}


def clustered_by(*columns: list[str]) -> Action:
    configuration = json.dumps({"clusteringColumns": columns})
    body = {"domain": "delta.clustering", "configuration": configuration, "removed": False}
    return "domainMetadata", body


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


def test_feature_without_one_that_it_requires_is_found() -> None:
    alone = {**CLUSTERED, "writerFeatures": ["clustering"]}
    found = validate_log([(0, [("protocol", alone), ("metaData", metadata()), clustered_by()])])
    assert ["clustering is supported without domainMetadata" in str(v) for v in found] == [True]


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
