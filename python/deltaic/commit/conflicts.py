"""When a commit that got in between forbids ours: one small rule per reason, in one list.

A rule looks at one winning commit and returns a `Conflict` or None. Rules are checked in the order
of `RULES`, so that the most telling reason is reported: a file with a new deletion vector is added,
too, but that both change the same file says more than that a file was added.

A file is identified by its path alone, but two commits may change it: if each only ends rows of it,
by deletion vectors, they conflict where they end the same rows (docs/decisions/0021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from deltaic.commit.isolation import Isolation
from deltaic.commit.ports import Winner
from deltaic.commit.read_set import ReadSet
from deltaic.exceptions import DeltaError, error
from deltaic.protocol.clustering import DOMAIN as CLUSTERING
from deltaic.protocol.clustering import lost_columns
from deltaic.protocol.domains import FEATURE as DOMAINS
from deltaic.protocol.features import supports


class Evidence(Enum):
    """What shows that two commits conflict."""

    #: The log alone.
    LOG = "log"
    #: The log says that rows which the winner added may matter; the rows themselves tell.
    ADDED_ROWS = "added rows"
    #: The same of rows that the winner deleted.
    DELETED_ROWS = "deleted rows"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why our commit cannot follow a winner.

    Attributes
    ----------
    condition
        The condition of the error it becomes if nothing can be done about it.
    detail
        The file, application or change at which the two meet.
    evidence
        What shows it: rows may show that there is no conflict.
    """

    condition: str
    winner: Winner
    detail: str
    evidence: Evidence = Evidence.LOG


Rule: TypeAlias = Callable[[ReadSet, Winner], Conflict | None]


def table_created(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object if we create a table that is there now."""
    if ours.creates_table:
        return Conflict("DELTAIC_TABLE_CREATED_CONCURRENTLY", winner, "the table was created")
    return None


def protocol_changed(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object to a new protocol: our files were written without knowing what it asks for."""
    if winner.protocol is None:
        return None
    return Conflict("DELTAIC_PROTOCOL_CHANGED", winner, "it changed the table's protocol")


def metadata_changed(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object to another definition than the one our rows, or the winner's, were written for.

    The second half is about columns: properties do not change what earlier rows mean. That a winner
    has counted identity columns is no matter to who has given no values of them.
    """
    if winner.metadata is not None and not ours.can_count_after(winner.metadata):
        detail = "it changed the table's metadata (its schema, partitioning or properties)"
        return Conflict("DELTAIC_METADATA_CHANGED", winner, detail)
    if ours.plan.changes_columns and winner.num_added > 0:
        detail = "it added files, and this operation changes the columns that files have to have"
        return Conflict("DELTAIC_METADATA_CHANGED", winner, detail)
    return None


def concurrent_append(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object to added rows that we should have read.

    A blind append of ours has read nothing. A blind append of the winner may be ordered after us,
    as it read nothing of ours, unless the order of the history is to be the order of all reads.
    """
    if ours.is_blind_append or ours.isolation is Isolation.SNAPSHOT:
        return None
    if ours.isolation is Isolation.WRITE_SERIALIZABLE and winner.is_blind_append:
        return None
    path = winner.add_matching_reads
    if not path:
        return None
    return Conflict("DELTAIC_CONCURRENT_APPEND", winner, path, Evidence.ADDED_ROWS)


def concurrent_delete_delete(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object if both remove the same file, or change it in ways that cannot be put together."""
    path = winner.removed_file_removed
    return Conflict("DELTAIC_CONCURRENT_DELETE_DELETE", winner, path) if path else None


def rows_moved(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object if rows that we end lie elsewhere now: the log does not say where.

    It does not say which file a row came from, either (Protocol § Add File and Remove File). Where
    none of the files are ours, the two commits go together in any order: the rows are the same.
    """
    path = winner.moved_file
    return Conflict("DELTAIC_CONCURRENT_REARRANGEMENT", winner, path) if path else None


def same_rows_ended(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object if both end the same rows of a file."""
    shared = winner.shared_rows
    if shared is None:
        return None
    detail = f"{shared.count} {'row' if shared.count == 1 else 'rows'} of the file {shared.path}"
    return Conflict("DELTAIC_CONCURRENT_ROW_CHANGE", winner, detail)


def concurrent_delete_read(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object to the loss of rows that we read, where those that we left alone matter, too.

    They do not if what becomes of a row depends on no other row of the table, as in a DELETE or an
    UPDATE: without them, the outcome is the same. In a MERGE a row may have kept a source row from
    being inserted, if it matched it: that the rows themselves tell. A subquery or INSERT ... SELECT
    has an outcome of its own, of which no single row tells anything.
    """
    path = winner.removed_file_read
    if not path:
        return None
    return Conflict("DELTAIC_CONCURRENT_DELETE_READ", winner, path, Evidence.DELETED_ROWS)


def concurrent_transaction(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object if both record progress of one application (Protocol § Transaction Identifiers)."""
    if ours.txn is None or ours.txn.app_id not in winner.txns:
        return None
    detail = f"txnAppId {ours.txn.app_id}, version {winner.txns[ours.txn.app_id]}"
    return Conflict("DELTAIC_CONCURRENT_TRANSACTION", winner, detail)


def domain_metadata_changed(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object if both set the same metadata domain (Protocol § Domain Metadata).

    That of row tracking is not ours to set: its count is taken up where the winner left it. A table
    that is to do without domains must not have got one.
    """
    keeps_domains = supports(ours.plan.effective.protocol, DOMAINS)
    met = ours.domains if keeps_domains or not ours.plan.changes_protocol else winner.domains
    shared = sorted(winner.domains.keys() & met)
    if not shared:
        return None
    return Conflict("DELTAIC_CONCURRENT_DOMAIN_METADATA", winner, shared[0])


def clustering_changed(ours: ReadSet, winner: Winner) -> Conflict | None:
    """Object to clustering by columns that our definition of the table is without.

    One that states the table anew says how it is clustered, too, even where that was so before.
    """
    configuration = winner.domains.get(CLUSTERING)
    if configuration is None or not ours.redefines:
        return None
    metadata = ours.plan.effective.metadata
    columns = lost_columns(ours.table, metadata, configuration)
    if not columns and not ours.operation.replaces_table:
        return None
    detail = "it chose other clustering columns"
    if columns:
        detail = f"it clustered the table by {', '.join(columns)}"
    return Conflict("DELTAIC_METADATA_CHANGED", winner, detail)


RULES: tuple[Rule, ...] = (
    table_created,
    protocol_changed,
    metadata_changed,
    clustering_changed,
    concurrent_transaction,
    domain_metadata_changed,
    concurrent_delete_delete,
    rows_moved,
    same_rows_ended,
    concurrent_delete_read,
    concurrent_append,
)


def find_conflict(
    ours: ReadSet, winner: Winner, is_confirmed: Callable[[Conflict], bool] = lambda _: True
) -> Conflict | None:
    """Return the first conflict of our transaction with a winner.

    Parameters
    ----------
    is_confirmed
        Whether the evidence of a conflict holds when it is looked at.
    """
    for rule in RULES:
        found = rule(ours, winner)
        if found is not None and is_confirmed(found):
            return found
    return None


def conflict_error(ours: ReadSet, conflict: Conflict) -> DeltaError:
    """Return the error that tells the user of a conflict. Nowhere else does one become an error."""
    return error(
        conflict.condition,
        table=ours.table,
        operation=ours.operation.value,
        version=conflict.winner.version,
        winnerOperation=conflict.winner.operation or "an unnamed operation",
        detail=conflict.detail,
    )
