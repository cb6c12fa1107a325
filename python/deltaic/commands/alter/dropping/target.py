"""The table that loses a feature, and the commits that this takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commands.definitions.column_parameters import compact
from deltaic.commit.clock import Clock
from deltaic.commit.downgrade import Downgrade
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import (
    CommitSummary,
    OperationInfo,
    PreparedCommit,
    TableAccess,
    TableSnapshot,
)
from deltaic.commit.transaction import CommitResult, RetryPolicy, commit, with_user_metadata
from deltaic.protocol.actions import DomainMetadata, Metadata


@dataclass(frozen=True, slots=True)
class Target:
    """A table that loses a feature."""

    table: str
    tables: TableAccess
    policy: RetryPolicy
    clock_ms: Clock

    @property
    def files(self) -> Downgrade:
        """The files and the log of the table."""
        return self.tables.downgrade(self.table)

    def current(self) -> TableSnapshot:
        """Return the newest version, which this build can write."""
        return current_snapshot(self.table, self.tables)

    def set_definition(
        self,
        current: TableSnapshot,
        metadata: Metadata,
        operation: Operation,
        parameters: Mapping[str, str],
        *,
        changes_columns: bool = False,
    ) -> bool:
        """Commit another definition; return False if it is the current one.

        Parameters
        ----------
        changes_columns
            As for `Alteration`.
        """
        result = alter(
            Alteration(
                self.table,
                current,
                metadata,
                operation,
                parameters,
                changes_columns=changes_columns,
            ),
            self.tables,
            self.policy,
            self.clock_ms,
            more_follows=True,
        )
        return not result.skipped

    def unset(self, names: Collection[str]) -> bool:
        """Unset properties; return False if none is set."""
        current = self.current()
        configuration = current.metadata.configuration
        present = [name for name in configuration if name in names]
        if not present:
            return False
        retained = {k: v for k, v in configuration.items() if k not in present}
        return self.set_definition(
            current,
            replace(current.metadata, configuration=retained),
            Operation.UNSET_TBLPROPERTIES,
            {"properties": compact(present), "ifExists": "true"},
        )

    def summary(
        self,
        current: TableSnapshot,
        operation: Operation,
        parameters: Mapping[str, str],
        domains: tuple[DomainMetadata, ...] = (),
    ) -> CommitSummary:
        """Return a commit that does not change the definition."""
        plan = CommitPlan(
            Definition(current.protocol, current.metadata),
            current.as_previous_version(),
            domains=domains,
            changes_data=False,
        )
        summary = CommitSummary(
            table=self.table,
            read_version=current.version,
            operation=OperationInfo(operation, parameters),
            plan=plan,
            is_blind_append=False,
            reads_whole_table=False,
        )
        return with_user_metadata(summary, self.tables)

    def commit(self, prepared: PreparedCommit) -> CommitResult:
        """Commit; others may commit before it."""
        return commit(prepared, self.tables, self.policy, self.clock_ms)

    def commit_summary(self, summary: CommitSummary) -> CommitResult:
        """Commit a summary without files."""
        return self.commit(self.tables.prepare_metadata_commit(summary))
