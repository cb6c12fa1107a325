"""Which pairs of concurrent commits do not conflict: one table, read in both orders.

Each row names two operations on a table with files `one` (rows with p = 1) and `two` (p = 2), and
what becomes of each when it commits second, by isolation level. The expected answers are those of
delta-spark's documentation on concurrency control, except where a comment says otherwise.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from deltaic.commit.conflicts import conflict_error, find_conflict
from deltaic.commit.current_transaction import current_transaction_of
from deltaic.commit.plan import Definition
from deltaic.commit.ports import WinningCommit
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentModificationError,
    ConcurrentTransactionException,
    DeltaError,
    MetadataChangedException,
    ProtocolChangedException,
)
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from tests.support.definitions import column, create, plan, schema
from tests.support.memory_log import (
    EVERYTHING,
    MemoryCommit,
    MemoryFile,
    MemoryLog,
    keep_definition,
    set_property,
)

ONE, TWO = MemoryFile("one", 1), MemoryFile("two", 2)
Operation = Callable[[MemoryLog], MemoryCommit]


def append(value: int, path: str = "new", **options: str) -> Operation:
    return lambda log: MemoryCommit(
        log,
        "WRITE",
        adds=[MemoryFile(f"{path}-{value}-{id(log)}", value)],
        options=options,
        is_blind_append=True,
    )


def append_what_was_read(value: int) -> Operation:
    """INSERT INTO t SELECT ... FROM t WHERE p = value."""
    return lambda log: MemoryCommit(
        log, "WRITE", adds=[MemoryFile(f"copy-{value}", value)], reads=frozenset({value})
    )


def delete(value: int) -> Operation:
    """DELETE WHERE p = value, which removes the whole file."""
    path = "one" if value == 1 else "two"
    return lambda log: MemoryCommit(log, "DELETE", removes=[path], reads=frozenset({value}))


def delete_some(value: int, dv_id: str) -> Operation:
    """DELETE of some rows, by a deletion vector."""
    file = ONE if value == 1 else TWO
    return lambda log: MemoryCommit(
        log,
        "DELETE",
        removes=[file.path],
        adds=[dataclasses.replace(file, dv_id=dv_id)],
        reads=frozenset({value}),
    )


def delete_rows(rows: str, file: MemoryFile = ONE, reads: int | None = None) -> Operation:
    """DELETE WHERE p = 1 and something that is true of these rows, by a deletion vector."""
    return lambda log: MemoryCommit(
        log,
        "DELETE",
        removes=[file.path],
        adds=[dataclasses.replace(file, dv_id=rows)],
        reads=EVERYTHING if reads is None else frozenset({reads}),
        row_by_row=True,
    )


def delete_all_rows(log: MemoryLog) -> MemoryCommit:
    return MemoryCommit(log, "DELETE", removes=["one"], reads=frozenset({1}), row_by_row=True)


def update_rows(rows: str) -> Operation:
    """UPDATE ... WHERE p = 1, after which the rows are still there."""

    def prepare(log: MemoryLog) -> MemoryCommit:
        deleted = delete_rows(rows, reads=1)(log)
        return dataclasses.replace(
            deleted, operation="UPDATE", adds=[*deleted.adds, MemoryFile(f"new-{rows}", 1)]
        )

    return prepare


def delete_nothing(log: MemoryLog) -> MemoryCommit:
    """A MERGE that read p = 1, inserted p = 1 and touched no file."""
    return MemoryCommit(log, "MERGE", adds=[MemoryFile("merged", 1)], reads=frozenset({1}))


def compact(log: MemoryLog) -> MemoryCommit:
    return MemoryCommit(
        log,
        "OPTIMIZE",
        removes=["one", "two"],
        adds=[MemoryFile("compacted", 1)],
        reads=EVERYTHING,
        data_change=False,
    )


def compact_one(log: MemoryLog) -> MemoryCommit:
    return MemoryCommit(
        log,
        "OPTIMIZE",
        removes=["one"],
        adds=[MemoryFile("compacted", 1)],
        reads=frozenset({1}),
        data_change=False,
    )


def overwrite(path: str) -> Operation:
    return lambda log: MemoryCommit(
        log,
        "WRITE",
        adds=[MemoryFile(path, 3)],
        removes=[f.path for f in log.files()],
        reads=EVERYTHING,
    )


def overwrite_columns(log: MemoryLog) -> MemoryCommit:
    planned = plan(
        log, "overwrite", schema_string=schema("other"), options={"overwriteschema": "true"}
    )
    return MemoryCommit(
        log,
        "WRITE",
        adds=[MemoryFile("other", 3)],
        removes=[f.path for f in log.files()],
        reads=EVERYTHING,
        plan=planned,
    )


def overwrite_partition(value: int, path: str) -> Operation:
    """INSERT OVERWRITE of the partition p = value, static or dynamic."""
    return lambda log: MemoryCommit(
        log,
        "WRITE",
        adds=[MemoryFile(path, value)],
        removes=[f.path for f in log.files() if f.value == value],
        reads=frozenset({value}),
    )


def upgrade(log: MemoryLog) -> MemoryCommit:
    kept = keep_definition(log, log.version)
    features = frozenset({"appendOnly", "invariants"})
    definition = Definition(Protocol(1, 7, None, features), kept.definition.metadata)
    changed = dataclasses.replace(kept, definition=definition, changes_protocol=True)
    return MemoryCommit(log, "UPGRADE PROTOCOL", plan=changed)


def set_domain(domain: str) -> Operation:
    def prepare(log: MemoryLog) -> MemoryCommit:
        kept = keep_definition(log, log.version)
        planned = dataclasses.replace(kept, domains=(DomainMetadata(domain, "{}"),))
        return MemoryCommit(log, "SET DOMAIN METADATA", plan=planned)

    return prepare


NONE: type[ConcurrentModificationError] | None = None
APPEND = ConcurrentAppendException
DELETE_DELETE = ConcurrentDeleteDeleteException
DELETE_READ = ConcurrentDeleteReadException
METADATA = MetadataChangedException
PROTOCOL = ProtocolChangedException
TXN = ConcurrentTransactionException

#: left, right, what becomes of left after right and of right after left; a pair where the levels
#: differ: WriteSerializable, Serializable.
PAIRS = [
    ("appends", append(1, "a"), append(1, "b"), NONE, NONE),
    ("append, delete there", append(1), delete(1), NONE, (NONE, APPEND)),
    ("append, delete elsewhere", append(2), delete(1), NONE, NONE),
    ("append, delete of some rows", append(1), delete_some(1, "x"), NONE, (NONE, APPEND)),
    ("append, insert of what was read", append(1), append_what_was_read(1), NONE, (NONE, APPEND)),
    ("append, merge that inserts", append(1), delete_nothing, NONE, (NONE, APPEND)),
    ("append, compaction", append(1), compact, NONE, NONE),
    ("append, overwrite", append(1), overwrite("o"), NONE, (NONE, APPEND)),
    ("append, overwrite of columns", append(1), overwrite_columns, METADATA, METADATA),
    (
        "append, overwrite of its partition",
        append(1),
        overwrite_partition(1, "o"),
        NONE,
        (NONE, APPEND),
    ),
    ("append, overwrite of another", append(2), overwrite_partition(1, "o"), NONE, NONE),
    ("append, domain", append(1), set_domain("app"), NONE, NONE),
    ("append, property", append(1), set_property, METADATA, NONE),
    ("append, protocol", append(1), upgrade, PROTOCOL, NONE),
    ("copies of each other's rows", append_what_was_read(1), delete_nothing, APPEND, APPEND),
    ("copies of other rows", append_what_was_read(1), append_what_was_read(2), NONE, NONE),
    ("copy, delete of what was read", append_what_was_read(1), delete(1), DELETE_READ, APPEND),
    ("copy, delete elsewhere", append_what_was_read(1), delete(2), NONE, NONE),
    ("deletes of one file", delete(1), delete(1), DELETE_DELETE, DELETE_DELETE),
    ("deletes of two files", delete(1), delete(2), NONE, NONE),
    (
        "deletes of rows of one file",
        delete_some(1, "x"),
        delete_some(1, "y"),
        DELETE_DELETE,
        DELETE_DELETE,
    ),
    ("deletes of other rows of one file", delete_rows("ab"), delete_rows("cd"), NONE, NONE),
    ("deletes of some rows", delete_rows("abc"), delete_rows("bcd"), DELETE_DELETE, DELETE_DELETE),
    (
        "deletes of some rows and all",
        delete_rows("a"),
        delete_all_rows,
        DELETE_DELETE,
        DELETE_DELETE,
    ),
    # The rows of an update are still what the other one looks for: statistics cannot tell.
    ("update and delete of other rows", update_rows("ab"), delete_rows("c", reads=1), NONE, APPEND),
    ("updates of other rows", update_rows("ab"), update_rows("cd"), APPEND, APPEND),
    ("updates of some rows", update_rows("ab"), update_rows("bc"), DELETE_DELETE, DELETE_DELETE),
    ("delete of rows, rewrite", delete_rows("a"), delete_some(1, "b"), NONE, DELETE_DELETE),
    ("delete of rows, compaction", delete_rows("a"), compact, DELETE_DELETE, DELETE_DELETE),
    ("delete of rows, compaction of others", delete_rows("a", TWO), compact_one, NONE, NONE),
    ("delete of rows, loss of others", delete_rows("a", TWO), delete(1), NONE, NONE),
    ("copy, compaction of what was read", append_what_was_read(1), compact_one, NONE, NONE),
    ("copy, delete of some rows", append_what_was_read(1), delete_rows("a"), DELETE_READ, APPEND),
    ("deletes of rows of two files", delete_some(1, "x"), delete_some(2, "y"), NONE, NONE),
    ("delete, rows of the same file", delete(1), delete_some(1, "x"), DELETE_DELETE, DELETE_DELETE),
    ("delete, merge that inserts", delete(1), delete_nothing, APPEND, DELETE_READ),
    ("delete, compaction", delete(1), compact, DELETE_DELETE, DELETE_DELETE),
    ("delete, compaction elsewhere", delete(2), compact_one, NONE, NONE),
    ("delete, overwrite", delete(1), overwrite("o"), DELETE_DELETE, DELETE_DELETE),
    ("delete, property", delete(1), set_property, METADATA, NONE),
    ("delete, protocol", delete(1), upgrade, PROTOCOL, NONE),
    ("compactions of one file", compact, compact_one, DELETE_DELETE, DELETE_DELETE),
    ("overwrites", overwrite("a"), overwrite("b"), DELETE_DELETE, DELETE_DELETE),
    (
        "overwrites of one partition",
        overwrite_partition(1, "a"),
        overwrite_partition(1, "b"),
        DELETE_DELETE,
        DELETE_DELETE,
    ),
    (
        "overwrites of two partitions",
        overwrite_partition(1, "a"),
        overwrite_partition(2, "b"),
        NONE,
        NONE,
    ),
    (
        "overwrites of empty partitions",
        overwrite_partition(3, "a"),
        overwrite_partition(3, "b"),
        APPEND,
        APPEND,
    ),
    (
        "overwrite of a partition, delete in it",
        overwrite_partition(1, "a"),
        delete_some(1, "x"),
        DELETE_DELETE,
        DELETE_DELETE,
    ),
    (
        "overwrite of a partition, delete elsewhere",
        overwrite_partition(1, "a"),
        delete_some(2, "x"),
        NONE,
        NONE,
    ),
    (
        "overwrite of a partition, copy of its rows",
        overwrite_partition(1, "a"),
        append_what_was_read(1),
        APPEND,
        DELETE_READ,
    ),
    ("one domain", set_domain("app"), set_domain("app"), TXN, TXN),
    ("two domains", set_domain("app"), set_domain("other"), NONE, NONE),
    ("domain, property", set_domain("app"), set_property, METADATA, NONE),
    ("compaction, property", compact, set_property, METADATA, NONE),
    ("properties", set_property, set_property, METADATA, METADATA),
    ("protocols", upgrade, upgrade, PROTOCOL, PROTOCOL),
    (
        "one application twice",
        append(1, "a", txnappid="app", txnversion="1"),
        append(1, "b", txnappid="app", txnversion="2"),
        # By the time the other's progress is seen it is recorded: version 1 is done, and skipped.
        "skipped",
        TXN,
    ),
    (
        "two applications",
        append(1, "a", txnappid="app", txnversion="1"),
        append(1, "b", txnappid="other", txnversion="1"),
        NONE,
        NONE,
    ),
]


def cases() -> list[Any]:
    """Spell the table out: each pair in both orders under both levels."""
    spelled = []
    for name, left, right, left_second, right_second in PAIRS:
        for first, second, expected, order in (
            (right, left, left_second, "left second"),
            (left, right, right_second, "right second"),
        ):
            by_level = expected if isinstance(expected, tuple) else (expected, expected)
            for level, outcome in zip(("WriteSerializable", "Serializable"), by_level, strict=True):
                spelled.append(
                    pytest.param(first, second, level, outcome, id=f"{name}: {order}, {level}")
                )
    return spelled


@pytest.mark.parametrize(("first", "second", "level", "outcome"), cases())
def test_second_of_two_concurrent_commits(
    first: Operation, second: Operation, level: str, outcome: Any
) -> None:
    log = create(ONE, TWO, isolationLevel=level)
    theirs, ours = first(log), second(log)
    assert commit(theirs, log).version == 1
    before = list(log.commits_lines)

    if isinstance(outcome, type):
        with pytest.raises(ConcurrentModificationError) as caught:
            commit(ours, log)
        assert isinstance(caught.value, outcome)
        assert caught.value.winning_version == 1
        assert caught.value.winning_operation == theirs.operation
        assert caught.value.table == log.table
        if outcome is not PROTOCOL:
            assert caught.value.reason
        assert theirs.operation in str(caught.value)
        assert log.commits_lines == before
    elif outcome == "skipped":
        assert commit(ours, log).skipped
        assert log.commits_lines == before
    else:
        assert commit(ours, log).version == 2
        (info,) = log.actions(2, "commitInfo")
        assert info["readVersion"] == 0


def identity_moved_to(metadata: Metadata, mark: int) -> Metadata:
    identity = column(
        "id",
        metadata={
            "delta.identity.start": 1,
            "delta.identity.step": 1,
            "delta.identity.highWaterMark": mark,
        },
    )
    return dataclasses.replace(metadata, schema_string=schema(identity, "p"))


@pytest.mark.parametrize(
    ("gives_values", "renamed", "expected"),
    [(False, False, None), (True, False, METADATA), (False, True, METADATA)],
)
def test_identity_values_of_a_winner_conflict_with_commits_that_generate_some(
    gives_values: bool, renamed: bool, expected: type[DeltaError] | None
) -> None:
    log = create(ONE)
    ours = current_transaction_of(delete(1)(log).summary(), None)
    before = identity_moved_to(ours.plan.definition.metadata, 10)
    definition = Definition(ours.plan.definition.protocol, before)
    planned = dataclasses.replace(ours.plan, definition=definition, changes_metadata=gives_values)
    generated = frozenset({"id"} if gives_values else ())
    ours = dataclasses.replace(
        ours, plan=planned, latest_metadata=before, generated_identity_columns=generated
    )
    after = identity_moved_to(before, 20)
    metadata = dataclasses.replace(after, name="t" if renamed else None)
    winner = WinningCommit(1, "WRITE", metadata=metadata)
    conflict = find_conflict(ours, winner)
    if expected is None:
        assert conflict is None
    else:
        assert conflict is not None
        assert isinstance(conflict_error(ours, conflict), expected)


def test_progress_recorded_between_check_and_attempt_conflicts() -> None:
    log = create(ONE)
    racing = append(1, "b", txnappid="app", txnversion="2")(log)

    def meanwhile(version: int) -> None:
        log.before_try = lambda v: None
        commit(append(1, "a", txnappid="app", txnversion="1")(log), log)

    log.before_try = meanwhile
    with pytest.raises(TXN, match="app"):
        commit(racing, log)


def test_a_conflict_with_any_of_several_winners_is_found() -> None:
    log = create(ONE, TWO)
    ours = delete(1)(log)
    for operation in (append(2, "a"), append(2, "b"), delete_some(1, "x"), append(2, "c")):
        commit(operation(log), log)
    with pytest.raises(ConcurrentDeleteDeleteException) as caught:
        commit(ours, log)
    assert caught.value.parameters["version"] == "3"


def test_winner_without_is_blind_append_is_treated_as_one_that_reads() -> None:
    log = create(ONE, TWO)
    ours = delete(1)(log)
    log.write_if_absent(1, [json.dumps({"add": MemoryFile("foreign", 1).add(True)})])
    with pytest.raises(ConcurrentAppendException):
        commit(ours, log)


def test_attempts_are_bounded() -> None:
    log = create(ONE)
    ours = append(1)(log)

    def meanwhile(version: int) -> None:
        log.before_try = lambda v: None
        commit(append(1, f"x{version}")(log), log)
        log.before_try = meanwhile

    log.before_try = meanwhile
    with pytest.raises(ConcurrentModificationError, match="3 times in a row"):
        commit(ours, log, RetryPolicy(max_attempts=3))
    assert log.version == 3
