"""The conflict rules: when a winning commit conflicts with ours. One rule per reason, in one list.

A rule checks one winning commit and returns a `Conflict` or None. Rules are checked in the order of
`RULES`, so that the most specific reason is reported: a file with a new deletion vector is also
added, but "both change the same file" is more specific than "a file was added".

A file is identified by its path alone. Two commits may still change the same file: if both only
delete rows of it by deletion vectors, they conflict only if they delete the same rows
(docs/decisions/0021).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from deltaic.commit.current_transaction import CurrentTransaction
from deltaic.commit.isolation import Isolation
from deltaic.commit.operations import Operation
from deltaic.commit.ports import WinningCommit
from deltaic.exceptions import DeltaError, error
from deltaic.protocol.columns.clustering import DOMAIN as CLUSTERING
from deltaic.protocol.columns.clustering import lost_columns
from deltaic.protocol.domains import FEATURE as DOMAINS
from deltaic.protocol.features import supports


class Evidence(Enum):
    """What shows that two commits conflict.

    `deltaic.commit.row_evidence` has a query for each member but `LOG`.
    """

    #: The log alone.
    LOG = "log"
    #: By the log, rows that the winner added may conflict; a query of these rows decides.
    ADDED_ROWS = "added rows"
    #: The same for rows that the winner deleted.
    DELETED_ROWS = "deleted rows"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why our commit conflicts with a winner.

    Attributes
    ----------
    condition
        The condition of the error that is raised if the conflict is confirmed.
    detail
        The file, application or change on which the two conflict.
    evidence
        What shows the conflict; a query of the rows may show that there is none.
    """

    condition: str
    winner: WinningCommit
    detail: str
    evidence: Evidence = Evidence.LOG


Rule: TypeAlias = Callable[[CurrentTransaction, WinningCommit], Conflict | None]


def table_created(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if we create a table that exists now."""
    if ours.creates_table:
        return Conflict("DELTAIC_TABLE_CREATED_CONCURRENTLY", winner, "the table was created")
    return None


def protocol_changed(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if the winner changed the protocol: our files were written under the older one."""
    if winner.protocol is None:
        return None
    return Conflict("DELTAIC_PROTOCOL_CHANGED", winner, "it changed the table's protocol")


def files_changed(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if we set all files of the table, and the winner changed files or clustering.

    Our commit would not remove the winner's files, and the table would not equal the older version
    or the source. A VACUUM that began meanwhile may delete files that we are about to add.
    """
    if not ours.operation.sets_all_files:
        return None
    if winner.num_added > 0:
        return Conflict("DELTAIC_FILES_CHANGED_CONCURRENTLY", winner, "it added files")
    if winner.removed_file_we_read or winner.removed_file_we_change:
        return Conflict("DELTAIC_FILES_CHANGED_CONCURRENTLY", winner, "it removed files")
    if CLUSTERING in winner.domains:
        return Conflict(
            "DELTAIC_FILES_CHANGED_CONCURRENTLY", winner, "it set the clustering columns"
        )
    if winner.operation == Operation.VACUUM_START.value:
        detail = "it deletes files that the new version may need"
        return Conflict("DELTAIC_FILES_CHANGED_CONCURRENTLY", winner, detail)
    return None


def metadata_changed(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if our rows or the winner's were written for another definition of the table.

    The winner's rows conflict only with a change of columns: properties do not change what earlier
    rows mean. A winner that moved identity high-water marks does not affect a transaction that
    generated no identity values.
    """
    if winner.metadata is not None and not ours.can_rebase_onto_metadata(winner.metadata):
        detail = "it changed the table's metadata (its schema, partitioning or properties)"
        return Conflict("DELTAIC_METADATA_CHANGED", winner, detail)
    if ours.plan.changes_columns and winner.num_added > 0:
        detail = "it added files, and this operation changes the columns that files have to have"
        return Conflict("DELTAIC_METADATA_CHANGED", winner, detail)
    return None


def concurrent_append(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if the winner added rows that we should have read.

    If ours is a blind append, it read nothing. If the winner is a blind append, it read nothing of
    ours and may be ordered after us, except at the level Serializable.
    """
    if ours.is_blind_append or ours.isolation is Isolation.SNAPSHOT:
        return None
    if ours.isolation is Isolation.WRITE_SERIALIZABLE and winner.is_blind_append:
        return None
    path = winner.added_file_we_would_read
    if not path:
        return None
    return Conflict("DELTAIC_CONCURRENT_APPEND", winner, path, Evidence.ADDED_ROWS)


def concurrent_delete_delete(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if both remove the same file, or change it in ways that cannot be combined."""
    path = winner.removed_file_we_change
    condition = _changed_rows_condition(ours, "DELTAIC_CONCURRENT_DELETE_DELETE")
    return Conflict(condition, winner, path) if path else None


def concurrent_compaction(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if the winner rewrote rows that we delete into other files.

    By the protocol, the log records neither where a row was moved nor which file it came from
    (Protocol § Add File and Remove File). If the winner is a compaction of Deltaic, which records
    it, or if row IDs find the rows, our deletions follow the rows, and this is no conflict
    (docs/decisions/0047-a-compacted-file-knows-its-inputs.md). Nor is it one if the winner rewrote
    no file that we change: the rows are the same.
    """
    path = winner.compacted_file_we_change
    condition = _changed_rows_condition(ours, "DELTAIC_CONCURRENT_COMPACTION")
    return Conflict(condition, winner, path) if path else None


def _changed_rows_condition(ours: CurrentTransaction, condition: str) -> str:
    """Return the condition of a change of the same file, or that of a commit that moves its rows.

    A commit that moves rows conflicts only if it does not know where they are, and can be told what
    to do about that.
    """
    moves_rows = ours.operation in (Operation.OPTIMIZE, Operation.REORG)
    return "DELTAIC_CONCURRENT_CHANGE_OF_MOVED_ROWS" if moves_rows else condition


def concurrent_row_change(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if both delete the same rows of a file."""
    shared = winner.concurrently_deleted_rows
    if shared is None:
        return None
    detail = f"{shared.count} {'row' if shared.count == 1 else 'rows'} of the file {shared.path}"
    return Conflict("DELTAIC_CONCURRENT_ROW_CHANGE", winner, detail)


def concurrent_delete_read(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if the winner deleted rows that we read, even if we did not change them.

    There is no conflict if the result for a row depends on no other row of the table, as in a
    DELETE or an UPDATE: the outcome is the same without the deleted rows. In a MERGE, a deleted row
    may have matched a source row, which was then not inserted; a query of the rows decides. The
    result of a subquery or of INSERT ... SELECT may depend on any row, so no query can decide.
    """
    path = winner.removed_file_we_read
    if not path:
        return None
    return Conflict("DELTAIC_CONCURRENT_DELETE_READ", winner, path, Evidence.DELETED_ROWS)


def concurrent_transaction(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if both commit a ``txn`` of the same appId (Protocol § Transaction Identifiers)."""
    if ours.txn is None or ours.txn.app_id not in winner.txns:
        return None
    detail = f"txnAppId {ours.txn.app_id}, version {winner.txns[ours.txn.app_id]}"
    return Conflict("DELTAIC_CONCURRENT_TRANSACTION", winner, detail)


def domain_metadata_changed(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if both set the same metadata domain (Protocol § Domain Metadata).

    The domain of row tracking is no conflict: the high-water mark is recomputed on retry. If our
    commit drops the feature, any domain that the winner set is a conflict.
    """
    supports_domains = supports(ours.plan.definition.protocol, DOMAINS)
    ours_or_any = (
        ours.domains if supports_domains or not ours.plan.changes_protocol else winner.domains
    )
    shared = sorted(winner.domains.keys() & ours_or_any)
    if not shared:
        return None
    return Conflict("DELTAIC_CONCURRENT_DOMAIN_METADATA", winner, shared[0])


def clustering_changed(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
    """Conflict if the winner clustered the table by columns that our definition does not have.

    A commit that replaces the table also defines its clustering, even if that does not change.
    """
    configuration = winner.domains.get(CLUSTERING)
    if configuration is None or not ours.redefines:
        return None
    after = ours.plan.definition
    columns = lost_columns(ours.table, after.protocol, after.metadata, configuration)
    if not columns and not ours.operation.replaces_table:
        return None
    detail = "it chose other clustering columns"
    if columns:
        detail = f"it clustered the table by {', '.join(columns)}"
    return Conflict("DELTAIC_METADATA_CHANGED", winner, detail)


RULES: tuple[Rule, ...] = (
    table_created,
    protocol_changed,
    files_changed,
    metadata_changed,
    clustering_changed,
    concurrent_transaction,
    domain_metadata_changed,
    concurrent_delete_delete,
    concurrent_compaction,
    concurrent_row_change,
    concurrent_delete_read,
    concurrent_append,
)


def possible_conflicts(ours: CurrentTransaction, winner: WinningCommit) -> Iterator[Conflict]:
    """Yield the conflicts with a winner by the log, up to the first that it shows for certain."""
    for rule in RULES:
        found = rule(ours, winner)
        if found is not None:
            yield found
            if found.evidence is Evidence.LOG:
                return


def find_conflict(
    ours: CurrentTransaction,
    winner: WinningCommit,
    is_confirmed: Callable[[Conflict], bool] = lambda _: True,
) -> Conflict | None:
    """Return the first confirmed conflict of our transaction with a winner.

    Parameters
    ----------
    is_confirmed
        Returns whether the evidence confirms a conflict.
    """
    return next(filter(is_confirmed, possible_conflicts(ours, winner)), None)


def conflict_error(ours: CurrentTransaction, conflict: Conflict) -> DeltaError:
    """Return the error of a conflict. This is the only place where a conflict becomes an error."""
    return error(
        conflict.condition,
        table=ours.table,
        operation=ours.operation.value,
        version=conflict.winner.version,
        winnerOperation=conflict.winner.operation or "an unnamed operation",
        detail=conflict.detail,
    )
