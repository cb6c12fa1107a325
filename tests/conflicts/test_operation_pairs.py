"""Every operation after every other one: which do not conflict, and that neither is lost.

The operations are the real ones down to the files: their plans, what they read, and how they are
committed; of data there is one value to a file, in `MemoryLog`. All of them that touch rows are
about the partition p = 1, which is in the file `one`.

The expected answers follow from what each operation reads and writes, by the rules of delta-spark's
documentation on concurrency control; `tests/spark/commit/test_conflict_pairs.py` runs a sample of
them and compares rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from deltaic.commands.alter.row_ids import backfill_row_ids
from deltaic.commands.alter.upgrade_protocol import UpgradeProtocol, upgrade_protocol
from deltaic.commands.domain_metadata import set_domain_metadata
from deltaic.commands.registry import run_command
from deltaic.commit.operations import Operation as Named
from deltaic.commit.ports import TableSnapshot
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentModificationError,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
)
from deltaic.protocol.features import supports
from tests.support.definitions import column, plan, schema
from tests.support.memory_log import EVERYTHING, MemoryCommit, MemoryFile, MemoryLog
from tests.support.paired_log import COLUMNS, NUMBERED, base

_numbers = itertools.count()


@dataclass(frozen=True)
class Operation:
    """One operation, and whether a table shows that it is in its history.

    Attributes
    ----------
    run
        Plans, prepares and commits.
    shows
        Takes the paths of the table's files, and its non-file actions.
    deletes_rows
        Whether what others have written may be gone afterwards.
    """

    run: Callable[[MemoryLog], object]
    shows: Callable[[set[str], TableSnapshot], bool]
    deletes_rows: bool = False


def write(
    mode: str,
    path: str,
    *,
    operation: str = "WRITE",
    removes: str = "",
    reads: frozenset[int] | None = frozenset(),
    high_water_marks: dict[str, int] | None = None,
    **request: Any,
) -> Operation:
    """Return a write of one file; `removes` is a file, ``all`` or none."""

    def run(log: MemoryLog) -> None:
        asked = {"operation": Named(operation), "schema_string": COLUMNS, **request}
        planned = plan(log, mode, **asked)
        there = [file.path for file in log.files()]
        ours = MemoryCommit(
            log,
            operation,
            adds=[MemoryFile(f"{path}-{next(_numbers)}", 1)] if path else [],
            removes=there if removes == "all" else [p for p in there if p == removes],
            reads=reads,
            plan=planned,
            options=request.get("options", {}),
            is_blind_append=planned.is_blind_append and reads == frozenset(),
            identity_high_water_marks=high_water_marks or {},
        )
        commit(ours, log)

    def shows(paths: set[str], snapshot: TableSnapshot) -> bool:
        if not path:
            return paths.isdisjoint({"one", "two"})
        return any(p.startswith(f"{path}-") for p in paths)

    return Operation(run, shows, deletes_rows=bool(removes))


def compaction(log: MemoryLog) -> None:
    ours = MemoryCommit(
        log,
        "OPTIMIZE",
        adds=[MemoryFile("compacted", 1)],
        removes=["one", "two"],
        reads=EVERYTHING,
        data_change=False,
    )
    commit(ours, log)


def backfill(log: MemoryLog) -> None:
    backfill_row_ids(log.table, log, RetryPolicy(), lambda: 1)


def command(name: str, /, shows: Callable[[TableSnapshot], bool], **arguments: Any) -> Operation:
    def run(log: MemoryLog) -> None:
        run_command(name, {"table": log.table, **arguments}, log, RetryPolicy(), lambda: 1)

    return Operation(run, lambda paths, snapshot: shows(snapshot))


def schema_has(text: str) -> Callable[[TableSnapshot], bool]:
    return lambda snapshot: text in snapshot.metadata.schema_string


def property_is(name: str, value: str) -> Callable[[TableSnapshot], bool]:
    return lambda snapshot: snapshot.metadata.configuration.get(name) == value


IN_ONE: frozenset[int] = frozenset({1})

#: Their names, the columns of `OUTCOMES` under which they are winners, and what they are.
OPERATIONS: dict[str, tuple[str, Operation]] = {
    "append": ("A", write("append", "appended")),
    "append by an application": (
        "T",
        write(
            "append",
            "by app",
            operation="STREAMING UPDATE",
            options={"txnappid": "app", "txnversion": "1"},
        ),
    ),
    "append with identity values": ("N", write("append", "numbered", high_water_marks={"id": 9})),
    "append with new columns": (
        "E",
        write(
            "append",
            "evolved",
            schema_string=None,
            evolved_schema_string=schema(NUMBERED, "p", "x", "brought"),
        ),
    ),
    "insert from itself": ("S", write("append", "copied", reads=IN_ONE)),
    "overwrite": ("O", write("overwrite", "whole", removes="all", reads=EVERYTHING)),
    "replaceWhere": (
        "R",
        write(
            "overwrite",
            "replaced",
            removes="one",
            reads=IN_ONE,
            options={"replacewhere": "p = 1"},
        ),
    ),
    "REPLACE USING": (
        "U",
        write("overwrite", "used", removes="one", reads=IN_ONE, options={"replaceusing": "p"}),
    ),
    "DELETE": (
        "D",
        write("delete", "kept", operation="DELETE", removes="one", reads=IN_ONE),
    ),
    "UPDATE": (
        "W",
        write("update", "changed", operation="UPDATE", removes="one", reads=IN_ONE),
    ),
    "MERGE": ("M", write("merge", "merged", operation="MERGE", removes="one", reads=IN_ONE)),
    "TRUNCATE": (
        "X",
        write("delete", "", operation="TRUNCATE", removes="all", reads=EVERYTHING),
    ),
    "compaction": (
        "C",
        Operation(compaction, lambda paths, snapshot: "compacted" in paths, deletes_rows=True),
    ),
    "overwriteSchema": (
        "F",
        write(
            "overwrite",
            "other",
            removes="all",
            reads=EVERYTHING,
            schema_string=schema("id", "p", "other"),
            options={"overwriteschema": "true"},
        ),
    ),
    "REPLACE TABLE": (
        "Y",
        write("overwrite", "", operation="REPLACE TABLE", removes="all", reads=EVERYTHING),
    ),
    "REPLACE TABLE AS SELECT": (
        "Z",
        write(
            "overwrite",
            "selected",
            operation="REPLACE TABLE AS SELECT",
            removes="all",
            reads=EVERYTHING,
        ),
    ),
    "backfill of row IDs": ("B", Operation(backfill, lambda paths, snapshot: True)),
    "domain": (
        "G",
        Operation(
            lambda log: set_domain_metadata(log.table, "app", "{}", log, RetryPolicy()),
            lambda paths, snapshot: "app" in snapshot.domains,
        ),
    ),
    "CLUSTER BY": (
        "L",
        command(
            "clusterBy",
            lambda snapshot: snapshot.domains["delta.clustering"].count("col-") == 2,
            columns=[["p"], ["id"]],
        ),
    ),
    "SET TBLPROPERTIES": (
        "K",
        command("alterProperties", property_is("owner", "me"), set={"owner": "me"}),
    ),
    "ADD COLUMN": (
        "+",
        command(
            "addColumns",
            schema_has('"added"'),
            columns=[{"parent": [], "specified": column("added")}],
        ),
    ),
    "DROP COLUMN": (
        "-",
        command("dropColumns", lambda h: not schema_has('"x"')(h), columns=[["x"]]),
    ),
    "RENAME COLUMN": (
        "~",
        command("renameColumn", schema_has('"renamed"'), column=["x"], name="renamed"),
    ),
    "ADD CONSTRAINT": (
        "Q",
        command(
            "addConstraint",
            property_is("delta.constraints.c", "p > 0"),
            name="c",
            expression="p > 0",
        ),
    ),
    "UNSET TBLPROPERTIES": (
        "J",
        command(
            "alterProperties",
            lambda snapshot: "spare" not in snapshot.metadata.configuration,
            unset=["spare"],
        ),
    ),
    "CHANGE COLUMN": (
        "*",
        command(
            "alterColumns",
            schema_has('"told"'),
            columns=[{"column": ["x"], "comment": "told"}],
        ),
    ),
    "SYNC IDENTITY": (
        "I",
        command("syncIdentity", lambda snapshot: True, column=["id"], extreme={"value": 40}),
    ),
    "DROP CONSTRAINT": (
        "q",
        command(
            "dropConstraint",
            lambda snapshot: "delta.constraints.old" not in snapshot.metadata.configuration,
            name="old",
        ),
    ),
    "DROP FEATURE": (
        "v",
        command(
            "dropFeature",
            lambda snapshot: not supports(snapshot.protocol, "inCommitTimestamp"),
            feature="inCommitTimestamp",
        ),
    ),
    "UPGRADE PROTOCOL": (
        "V",
        Operation(
            lambda log: upgrade_protocol(
                UpgradeProtocol(log.table, reader_version=3, writer_version=7),
                log,
                RetryPolicy(),
                lambda: 1,
            ),
            lambda paths, snapshot: snapshot.protocol.min_reader_version == 3,
        ),
    ),
    "RESTORE": (
        "<",
        Operation(
            lambda log: run_command(
                "restore", {"table": log.table, "version": "0"}, log, RetryPolicy(), lambda: 1
            ),
            lambda paths, snapshot: "old" in paths and "two" not in paths,
        ),
    ),
}

#: What becomes of the row's operation when the column's has committed first, by the default level:
#: committed (.), nothing left to do (=), or the conflict by a letter of `ERRORS`. An append that
#: generates identity values is not blind: it has read the high-water mark. One that adds columns
#: changes the table's definition, and so do those that specify it again and everything from K on.
#: SYNC IDENTITY only conflicts with what generates identity values. RESTORE conflicts with every
#: change of files: the table would not equal the older version.
OUTCOMES = """
                            A T N E S O R U D W M X C F Y Z B G L K + - ~ Q J * I q v V <
append                      . . . m . . . . . . . . . m m m . . . m m m m m m m . m p p .
append by an application    . t . m . . . . . . . . . m m m . . . m m m m m m m . m p p .
append with identity values . . m m . . . . . . . . . m m m . . . m m m m m m m m m p p .
append with new columns     . . m m . . . . . . . . . m m m . . . m m m m m m m m m p p .
insert from itself          . . a m a r r r r r r r . m m m . . . m m m m m m m . m p p .
overwrite                   . . a m a d d d d d d d d m m m d . . m m m m m m m . m p p d
replaceWhere                . . a m a d d d d d d d d m m m d . . m m m m m m m . m p p .
REPLACE USING               . . a m a d d d d d d d d m m m d . . m m m m m m m . m p p .
DELETE                      . . a m a d d d d d d d d m m m d . . m m m m m m m . m p p .
UPDATE                      . . a m a d d d d d d d d m m m d . . m m m m m m m . m p p .
MERGE                       . . a m a d d d d d d d d m m m d . . m m m m m m m . m p p .
TRUNCATE                    . . a m a d d d d d d d d m m m d . . m m m m m m m . m p p d
compaction                  . . . m . d d d d d d d d m m m d . . m m m m m m m . m p p d
overwriteSchema             m m m m m m m m m m m d m m m m m . . m m m m m m m m m p p m
REPLACE TABLE               m m m m m m m m m m m d m m m m m . m m m m m m m m m m p p m
REPLACE TABLE AS SELECT     m m m m m m m m m m m d m m m m m . m m m m m m m m m m p p m
backfill of row IDs         . . . . . = . . . . . = = = = = = . . . . . . . . . . . . . .
domain                      . . . m . . . . . . . . . m m m . t . m m m m m m m . m p p .
CLUSTER BY                  . . . m . . . . . . . . . m m m . . t m m m m m m m . m p p .
SET TBLPROPERTIES           . . m m . . . . . . . . . m m m . . . m m m m m m m m m p p .
ADD COLUMN                  . . m m . . . . . . . . . m m m . . . m m m m m m m m m p p .
DROP COLUMN                 . . m m . . . . . . . . . m m m . . . m m m m m m m m m p p .
RENAME COLUMN               . . m m . . . . . . . . . m m m . . . m m m m m m m m m p p .
ADD CONSTRAINT              a a m m a r r r r r r r . m m m . . . m m m m m m m m m p p r
UNSET TBLPROPERTIES         . . m m . . . . . . . . . m m m . . . m m m m m m m m m p p .
CHANGE COLUMN               . . m m . . . . . . . . . m m m . . . m m m m m m m m m p p .
SYNC IDENTITY               a a m m a r r r r r r r . m m m . . . m m m m m m m m m p p r
DROP CONSTRAINT             . . m m . . . . . . . . . m m m . . . m m m m m m m m m p p .
DROP FEATURE                . . . m . . . . . . . . . m m m . . . m m m m m m m . m p p .
UPGRADE PROTOCOL            . . . m . . . . . . . . . m m m . . . m m m m m m m . m p p .
RESTORE                     w w w w w w w w w w w w w w w w w . w m m m m m m m . m p p w
"""

#: What has to see the rows that others append, if the order of the history is that of all reads.
READ_ROWS = {
    "insert from itself",
    "overwrite",
    "replaceWhere",
    "REPLACE USING",
    "DELETE",
    "UPDATE",
    "MERGE",
    "TRUNCATE",
}

ERRORS: dict[type[ConcurrentModificationError], str] = {
    ConcurrentAppendException: "a",
    ConcurrentDeleteDeleteException: "d",
    ConcurrentDeleteReadException: "r",
    MetadataChangedException: "m",
    ProtocolChangedException: "p",
    ConcurrentTransactionException: "t",
    ConcurrentWriteException: "w",
}


def rows() -> dict[str, str]:
    columns, *lines = OUTCOMES.strip("\n").split("\n")
    assert columns.split() == [letter for letter, _ in OPERATIONS.values()]
    return {line[:28].strip(): line[28:] for line in lines}


def outcome(mine: Operation, theirs: Operation, level: str, columns: str = COLUMNS) -> str:
    """Commit theirs right before mine is tried, and return the outcome of mine."""
    log = base(level, columns)

    def meanwhile(version: int) -> None:
        log.before_try = lambda _: None
        theirs.run(log)
        after_theirs.extend(log.commits_lines)

    after_theirs: list[list[str]] = []
    log.before_try = meanwhile
    try:
        mine.run(log)
    except ConcurrentModificationError as conflict:
        assert log.commits_lines == after_theirs, "it failed, and changed something"
        assert conflict.winning_version == 2 and conflict.reason
        require_history(log, theirs)
        return next(name for kind, name in ERRORS.items() if isinstance(conflict, kind))
    require_history(log, mine)
    if not mine.deletes_rows:
        require_history(log, theirs)
    if len(log.commits_lines) == len(after_theirs):
        return "="
    return "."


def require_history(log: MemoryLog, operation: Operation) -> None:
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    paths = {file.path for file in log.files()}
    assert operation.shows(paths, snapshot), "it is not there"
    ids = [file.base_row_id for file in log.files() if file.base_row_id is not None]
    assert len(set(ids)) == len(ids), "two files have the same row IDs"


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_after_each_other_one(name: str) -> None:
    _, mine = OPERATIONS[name]
    for level in ("WriteSerializable", "Serializable"):
        expected = rows()[name]
        if level == "Serializable" and name in READ_ROWS:
            # After blind appends, too: the letters A and T.
            expected = "a a" + expected[3:]
        found = [outcome(mine, theirs, level) for _, theirs in OPERATIONS.values()]
        assert " ".join(found) == expected, level


#: A table with row tracking keeps its columns.
REPLACE_COLUMNS = command(
    "replaceColumns",
    schema_has('"more"'),
    columns=[{"parent": [], "specified": column(name)} for name in ("id", "p", "x", "more")],
)


@pytest.mark.parametrize(
    "name", [n for n in OPERATIONS if "identity" not in n.casefold() and n != "ADD COLUMN"]
)
def test_replacing_columns_conflicts_with_what_adding_one_conflicts_with(name: str) -> None:
    _, other = OPERATIONS[name]
    _, adding = OPERATIONS["ADD COLUMN"]
    columns = schema("id", "p", "x")
    for level in ("WriteSerializable", "Serializable"):
        replaced, added = (
            (outcome(one, other, level, columns), outcome(other, one, level, columns))
            for one in (REPLACE_COLUMNS, adding)
        )
        assert replaced == added, level


CLONE = command(
    "cloneTable",
    lambda snapshot: True,
    source="memory:/t",
    sourceName="memory",
    sourceVersion=0,
    isShallow=True,
    replaces=True,
    properties={},
)


@pytest.mark.parametrize("name", [n for n in OPERATIONS if n != "RESTORE"])
def test_cloning_conflicts_with_changes_of_files_as_restoring_does(name: str) -> None:
    _, other = OPERATIONS[name]
    _, restoring = OPERATIONS["RESTORE"]
    for level in ("WriteSerializable", "Serializable"):
        assert outcome(CLONE, other, level) == outcome(restoring, other, level), level


def test_each_operation_of_the_history_is_tried_or_like_one_that_is() -> None:
    tried = set()
    for _, operation in OPERATIONS.values():
        log = base("WriteSerializable")
        operation.run(log)
        tried |= {info["operation"] for info in log.actions(log.version, "commitInfo")}
    # In tests/spark/commit/test_conflict_pairs.py: there is no table yet.
    creating = {"CREATE TABLE", "CREATE TABLE AS SELECT", "CONVERT"}
    alike = {
        "CREATE OR REPLACE TABLE",
        "CREATE OR REPLACE TABLE AS SELECT",
        "CHANGE COLUMNS",
        "REPLACE COLUMNS",
        "REORG",
        "CLONE",
    }
    vacuum = {"VACUUM START", "VACUUM END"}  # In test_vacuum_pairs.py.
    # In tests/unit/test_drop_reader_feature.py, and tests/spark/optimize/test_upgrade_uniform.py.
    dropping = {"Deletion Vector Tombstones", "Empty Commit", "REMOVE COLUMN MAPPING"}
    dropping |= {"ROW TRACKING UNBACKFILL", "REORG TABLE UPGRADE UNIFORM"}
    listed = tried | creating | alike | vacuum | dropping
    assert listed == {operation.value for operation in Named}
