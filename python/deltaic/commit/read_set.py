"""What a transaction has read and writes, as far as a conflict check asks for it.

The files themselves, and the predicates that selected them, stay in the JVM: it says of each
winning commit where that meets them (`deltaic.commit.ports.Winner`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from deltaic.commit.isolation import Isolation, isolation_of
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary
from deltaic.protocol.actions import Metadata, SetTransaction
from deltaic.protocol.identity import with_high_water_marks
from deltaic.protocol.identity_marks import differ_in_marks_alone, moved_marks


@dataclass(frozen=True, slots=True)
class ReadSet:
    """One transaction, seen by the conflict rules.

    Attributes
    ----------
    read_version
        The version it is based on; -1 if there was no table.
    plan
        What it changes beside files, and the definition it was written under.
    txn
        The progress it records, if it does.
    redefines
        Whether the table's definition changes by more than how far identity columns are counted.
    known
        The metadata that the table had at the last version that was looked at.
    marks
        How far its rows take identity columns, by column.
    numbered
        Those of them whose values the table has given.
    session_level
        The isolation level that the session sets for tables that set none.
    """

    table: str
    read_version: int
    operation: Operation
    isolation: Isolation
    is_blind_append: bool
    plan: CommitPlan
    txn: SetTransaction | None = None
    redefines: bool = False
    known: Metadata | None = None
    marks: Mapping[str, int] = field(default_factory=dict)
    numbered: frozenset[str] = frozenset()
    session_level: Isolation | None = None

    @property
    def creates_table(self) -> bool:
        """Whether there was no table before."""
        return self.read_version < 0

    @property
    def domains(self) -> frozenset[str]:
        """The metadata domains that it sets or removes."""
        return frozenset(action.domain for action in self.plan.domains)

    def can_count_after(self, theirs: Metadata) -> bool:
        """Whether metadata of a winner leave everything that this transaction relies on as it was.

        They do if they only say that identity columns are further, and it has given no values of
        these itself: such values are in its files, and may be the winner's, too. What users state
        is the same whoever was first.
        """
        if self.redefines or self.known is None:
            return False
        moved = moved_marks(self.table, self.known, theirs)
        return differ_in_marks_alone(self.known, theirs) and not moved & self.numbered

    def counted_after(self, theirs: Metadata) -> ReadSet:
        """Return the transaction as it is after a winner whose metadata it can count after."""
        marked = with_high_water_marks(theirs, self.marks)
        goes_further = bool(moved_marks(self.table, theirs, marked))
        definition = replace(self.plan.effective, metadata=marked if goes_further else theirs)
        plan = replace(self.plan, effective=definition, changes_metadata=goes_further)
        return replace(self, plan=plan, known=theirs)

    def joined_to(self, created: Definition, version: int) -> ReadSet:
        """Return the append to a table that another writer has created, in place of our creation.

        Parameters
        ----------
        created
            The definition under which the table was created.
        version
            The version that created it.
        """
        plan = replace(
            self.plan,
            effective=created,
            changes_protocol=False,
            changes_metadata=False,
            domains=(),
        )
        return replace(
            self,
            read_version=version,
            plan=plan,
            redefines=False,
            known=created.metadata,
            is_blind_append=True,
            isolation=isolation_of(
                self.table,
                created.metadata.configuration,
                changes_data=True,
                changes_metadata=False,
                session_level=self.session_level,
            ),
        )


def read_set_of(
    summary: CommitSummary, txn: SetTransaction | None, session_level: Isolation | None = None
) -> ReadSet:
    """Return the read set of a prepared commit, made in a session with that isolation level."""
    plan = _with_identity_marks(summary)
    return ReadSet(
        table=summary.table,
        read_version=summary.read_version,
        operation=summary.operation,
        isolation=isolation_of(
            summary.table,
            plan.effective.metadata.configuration,
            changes_data=summary.files.data_change or summary.files.is_empty,
            changes_metadata=plan.changes_metadata,
            session_level=session_level,
        ),
        is_blind_append=summary.is_blind_append and not plan.changes_metadata,
        plan=plan,
        txn=txn,
        redefines=summary.plan.changes_metadata,
        known=summary.plan.effective.metadata,
        marks=summary.identity_marks,
        numbered=summary.numbered,
        session_level=session_level,
    )


def _with_identity_marks(summary: CommitSummary) -> CommitPlan:
    """Return the plan with the metadata that the rows written make of the planned one."""
    plan = summary.plan
    if not summary.identity_marks:
        return plan
    marked = with_high_water_marks(plan.effective.metadata, summary.identity_marks)
    definition = Definition(plan.effective.protocol, marked)
    return replace(plan, effective=definition, changes_metadata=True)
