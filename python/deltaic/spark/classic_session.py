"""Deltaic in a session whose JVM is in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltaic.arguments import Assignments
from deltaic.commands.alter.drop_feature import DropFeature, drop_feature
from deltaic.commands.alter.upgrade_protocol import UpgradeProtocol, upgrade_protocol
from deltaic.commands.clone import CloneRequest
from deltaic.commands.detail import detail
from deltaic.commands.domain_metadata import (
    remove_domain_metadata,
    set_domain_metadata,
    user_domains,
)
from deltaic.commands.generate import Generate, generate
from deltaic.commands.history import history
from deltaic.commands.restore import Restore, restore
from deltaic.commit.clock import wall_clock_ms
from deltaic.spark.dataframes import to_dataframe
from deltaic.spark.errors import jvm_errors
from deltaic.spark.gateway import register_committer
from deltaic.spark.jvm import python_api, row_changes
from deltaic.spark.ports import JvmTableAccess
from deltaic.spark.session_values import MergeClause, ResolvedPath, ResolvedTable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class ClassicSession:
    """Deltaic in one session; registers the committer if necessary.

    Parameters
    ----------
    hadoop_conf
        Settings that apply to this object only, not to the session.

    Raises
    ------
    TableStateError
        If the JVM does not have the jar.
    """

    def __init__(self, spark: SparkSession, hadoop_conf: Mapping[str, str] | None = None) -> None:
        register_committer(spark)
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._session: Any = _with_settings(spark._jsparkSession, hadoop_conf or {})
        self._api = python_api(self._jvm)

    @property
    def _tables(self) -> JvmTableAccess:
        """The tables as this session sees them."""
        return JvmTableAccess(self._api, self._session)

    def is_delta_table(self, path: str) -> bool:
        """Whether there is a table at the path."""
        with jvm_errors():
            return bool(self._api.isDeltaTable(self._session, path))

    def clone_table(self, path: str, request: CloneRequest) -> None:
        """Clone the table at a path."""
        with jvm_errors():
            self._api.cloneTable(self._session, path, request.json())

    def rows(self, path: str) -> DataFrame:
        """Return the rows of the table at a path, as the target of a change with the settings."""
        from pyspark.sql import DataFrame

        with jvm_errors():
            return DataFrame(self._session.read().format("delta").load(path), self._spark)

    def with_columns_of(self, first: DataFrame, df: DataFrame) -> DataFrame | None:
        """Return a table's DataFrame with the columns of another; None if they differ."""
        from pyspark.sql import DataFrame

        with jvm_errors():
            aligned = row_changes(self._jvm).withColumnsOf(first._jdf, df._jdf)
        return None if aligned is None else DataFrame(aligned, self._spark)

    def resolve_name(self, name: str) -> ResolvedTable:
        """Resolve a table in the catalog."""
        with jvm_errors():
            body = json.loads(self._api.resolveName(self._session, name))
        return ResolvedTable(body["path"], body["name"])

    def history(self, path: str, limit: int | None) -> DataFrame:
        """Return the commits, newest first."""
        return to_dataframe(self._spark, history(path, self._tables, limit))

    def detail(self, path: str, name: str | None) -> DataFrame:
        """Describe the table; the name is None if it was found by its path."""
        return to_dataframe(self._spark, detail(self._qualified(path), self._tables, name))

    def generate(self, path: str, mode: str) -> None:
        """Write manifests."""
        generate(Generate(path, mode), self._tables)

    def upgrade_protocol(
        self,
        path: str,
        reader_version: int | None = None,
        writer_version: int | None = None,
        features: Sequence[str] = (),
    ) -> None:
        """Upgrade the protocol of a table, or add features to it."""
        arguments = UpgradeProtocol(path, reader_version, writer_version, features)
        tables = self._tables
        upgrade_protocol(arguments, tables, tables.retry_policy(), wall_clock_ms)

    def drop_feature(self, path: str, feature: str, *, truncates_history: bool) -> None:
        """Drop a feature from the protocol of a table."""
        arguments = DropFeature(path, feature, truncates_history)
        tables = self._tables
        drop_feature(arguments, tables, tables.retry_policy(), wall_clock_ms)

    def user_domains(self, path: str) -> dict[str, str]:
        """Return the configuration of each metadata domain of users."""
        return user_domains(path, self._tables)

    def set_domain_metadata(self, path: str, domain: str, configuration: str) -> None:
        """Set a metadata domain."""
        tables = self._tables
        set_domain_metadata(path, domain, configuration, tables, tables.retry_policy())

    def remove_domain_metadata(self, path: str, domain: str) -> None:
        """Remove a metadata domain."""
        tables = self._tables
        remove_domain_metadata(path, domain, tables, tables.retry_policy())

    def restore(self, path: str, version: str | None, timestamp: str | None) -> DataFrame:
        """Restore an older version; return the result of the statement."""
        tables = self._tables
        arguments = Restore(path, version, timestamp)
        rows = restore(arguments, tables, tables.retry_policy(), wall_clock_ms)
        return to_dataframe(self._spark, rows)

    def _qualified(self, path: str) -> str:
        """Return a path qualified with its file system, as in the log and the catalog."""
        with jvm_errors():
            hadoop_path = self._jvm.org.apache.hadoop.fs.Path(path)
            configuration = self._session.sessionState().newHadoopConf()
            file_system = hadoop_path.getFileSystem(configuration)
            return str(file_system.makeQualified(hadoop_path).toString())

    def vacuum(self, path: str, arguments: Mapping[str, Any]) -> DataFrame:
        """Run VACUUM; return its result."""
        from pyspark.sql import DataFrame

        with jvm_errors():
            return DataFrame(
                self._api.vacuum(self._session, path, json.dumps(arguments)), self._spark
            )

    def convert_to_delta(self, identifier: str, partitioning: str | None) -> ResolvedPath:
        """Run CONVERT TO DELTA; return the path of the table, and its name in the catalog."""
        with jvm_errors():
            body = json.loads(self._api.convertToDelta(self._session, identifier, partitioning))
        return ResolvedPath(body["path"], body["name"])

    def create_table(self, definition: Mapping[str, Any]) -> str | None:
        """Create or replace a table, as a builder defines it; return its location, if stated."""
        body = json.dumps(definition, ensure_ascii=False)
        with jvm_errors():
            location: str | None = self._api.createTable(self._session, body)
        return location

    def delete(self, target: DataFrame, condition: Column | None) -> None:
        """Delete the rows of a table's DataFrame for which the condition is true."""
        with jvm_errors():
            row_changes(self._jvm).delete(target._jdf, _java(condition))

    def update(self, target: DataFrame, condition: Column | None, assignments: Assignments) -> None:
        """Update the rows of a table's DataFrame for which the condition is true."""
        columns, values = _java_lists(assignments)
        with jvm_errors():
            row_changes(self._jvm).update(target._jdf, _java(condition), columns, values)

    def optimize(
        self,
        path: str,
        predicate: str | None,
        *,
        z_order_by: Sequence[str] = (),
        is_full: bool = False,
    ) -> DataFrame:
        """Compact the files of a table, or order its rows; return the result of the statement."""
        from pyspark.sql import DataFrame

        with jvm_errors():
            columns = list(z_order_by)
            result = self._api.optimize(self._session, path, predicate, columns, is_full)
            return DataFrame(result, self._spark)

    def purge(self, path: str, predicate: str | None) -> DataFrame:
        """Rewrite the files with deleted rows or dropped columns; return the statement's result."""
        from pyspark.sql import DataFrame

        with jvm_errors():
            return DataFrame(self._api.purge(self._session, path, predicate), self._spark)

    def merge(
        self,
        target: DataFrame,
        source: DataFrame,
        condition: Column,
        clauses: Sequence[MergeClause],
        *,
        evolves_schema: bool,
        transaction: tuple[str, int] | None,
    ) -> DataFrame:
        """Merge a source into a table's DataFrame; return the result of the statement.

        Parameters
        ----------
        transaction
            The application and version under which it is committed at most once.
        """
        from pyspark.sql import DataFrame

        with jvm_errors():
            changes = row_changes(self._jvm)
            statement = changes.merge(target._jdf, source._jdf, _java(condition))
            for clause in clauses:
                add = getattr(statement, clause.kind.value)
                if clause.assignments is None:
                    add(_java(clause.condition))
                else:
                    add(_java(clause.condition), *_java_lists(clause.assignments))
            if evolves_schema:
                statement.withSchemaEvolution()
            result = statement.runOnce(*transaction) if transaction else statement.run()
            return DataFrame(result, target.sparkSession)


def _with_settings(session: Any, settings: Mapping[str, str]) -> Any:
    """Return a JVM's session, or a clone with additional settings, which may be Hadoop's."""
    if not settings:
        return session
    clone = session.cloneSession()
    for name, value in settings.items():
        clone.conf().set(name, value)
    return clone


def _java(column: Column | None) -> Any:
    return None if column is None else column._jc


def _java_lists(assignments: Assignments) -> tuple[list[str], list[Any]]:
    """Return names and values as two lists, which Py4J converts to Java's."""
    return [name for name, _ in assignments], [value._jc for _, value in assignments]
