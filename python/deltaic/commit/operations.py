"""Operations by their names in commitInfo and the history, also those of other writers."""

from __future__ import annotations

from enum import Enum


class Operation(Enum):
    """One kind of operation; the names are delta-spark's."""

    WRITE = "WRITE"
    STREAMING_UPDATE = "STREAMING UPDATE"
    CREATE_TABLE = "CREATE TABLE"
    CREATE_TABLE_AS_SELECT = "CREATE TABLE AS SELECT"
    REPLACE_TABLE = "REPLACE TABLE"
    REPLACE_TABLE_AS_SELECT = "REPLACE TABLE AS SELECT"
    CREATE_OR_REPLACE_TABLE = "CREATE OR REPLACE TABLE"
    CREATE_OR_REPLACE_TABLE_AS_SELECT = "CREATE OR REPLACE TABLE AS SELECT"
    DELETE = "DELETE"
    UPDATE = "UPDATE"
    MERGE = "MERGE"
    TRUNCATE = "TRUNCATE"
    OPTIMIZE = "OPTIMIZE"
    REORG = "REORG"
    CONVERT = "CONVERT"
    RESTORE = "RESTORE"
    CLONE = "CLONE"
    SET_TBLPROPERTIES = "SET TBLPROPERTIES"
    UNSET_TBLPROPERTIES = "UNSET TBLPROPERTIES"
    ADD_COLUMNS = "ADD COLUMNS"
    DROP_COLUMNS = "DROP COLUMNS"
    REPLACE_COLUMNS = "REPLACE COLUMNS"
    RENAME_COLUMN = "RENAME COLUMN"
    CHANGE_COLUMN = "CHANGE COLUMN"
    CHANGE_COLUMNS = "CHANGE COLUMNS"
    ADD_CONSTRAINT = "ADD CONSTRAINT"
    DROP_CONSTRAINT = "DROP CONSTRAINT"
    CLUSTER_BY = "CLUSTER BY"
    UPGRADE_PROTOCOL = "UPGRADE PROTOCOL"
    DROP_FEATURE = "DROP FEATURE"
    EMPTY_COMMIT = "Empty Commit"
    VECTOR_TOMBSTONES = "Deletion Vector Tombstones"
    REMOVE_COLUMN_MAPPING = "REMOVE COLUMN MAPPING"
    UPGRADE_UNIFORM = "REORG TABLE UPGRADE UNIFORM"
    VACUUM_START = "VACUUM START"
    VACUUM_END = "VACUUM END"
    ROW_TRACKING_BACKFILL = "ROW TRACKING BACKFILL"
    ROW_TRACKING_UNBACKFILL = "ROW TRACKING UNBACKFILL"
    SET_DOMAIN_METADATA = "SET DOMAIN METADATA"

    @property
    def replaces_table(self) -> bool:
        """Whether the statement replaces the table, its properties included."""
        return self in _REPLACING

    @property
    def always_commits(self) -> bool:
        """Whether it commits a version even if it has no file actions."""
        is_empty = self is Operation.EMPTY_COMMIT
        return self in _WRITING or self in _REPLACING or self.is_vacuum or is_empty

    @property
    def commits_transaction_identifier(self) -> bool:
        """Whether it commits its transaction identifier even if it changes nothing else.

        A batch of a stream without rows does not: run again, it has no rows either.
        """
        return self is not Operation.STREAMING_UPDATE

    @property
    def is_vacuum(self) -> bool:
        """Whether it only records a run of VACUUM in the history."""
        return self in _VACUUM

    @property
    def sets_all_files(self) -> bool:
        """Whether the table has the files of an older version, or of its source, afterwards."""
        return self in (Operation.RESTORE, Operation.CLONE)

    @property
    def writes_a_query(self) -> bool:
        """Whether the rows that it adds are those of a query."""
        return self in _QUERIES


_REPLACING = frozenset(
    {
        Operation.REPLACE_TABLE,
        Operation.REPLACE_TABLE_AS_SELECT,
        Operation.CREATE_OR_REPLACE_TABLE,
        Operation.CREATE_OR_REPLACE_TABLE_AS_SELECT,
    }
)
_QUERIES = frozenset(
    {
        Operation.WRITE,
        Operation.CREATE_TABLE_AS_SELECT,
        Operation.REPLACE_TABLE_AS_SELECT,
        Operation.CREATE_OR_REPLACE_TABLE_AS_SELECT,
    }
)
_WRITING = _QUERIES | {Operation.CREATE_TABLE}
_VACUUM = frozenset({Operation.VACUUM_START, Operation.VACUUM_END})


class WriteMode(Enum):
    """How a write treats the existing rows."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    UPDATE = "update"
    MERGE = "merge"
    REWRITE = "rewrite"
