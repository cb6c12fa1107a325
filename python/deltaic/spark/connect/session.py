"""Deltaic in a session of Spark Connect, whose server has the plugins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.pandas.types import from_arrow_schema

from deltaic.arguments import Assignments
from deltaic.commands.clone import CloneRequest
from deltaic.spark.connect.errors import convert_server_exceptions, server_errors
from deltaic.spark.connect.messages import encode
from deltaic.spark.session_values import ClauseKind, MergeClause, ResolvedPath, ResolvedTable

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame, SparkSession

_RELATION = "delta.connect.DeltaRelation"
_CALL = "deltaic.connect.TableCall"

#: The action of a clause, and whether it has assignments.
_ACTIONS: Mapping[ClauseKind, tuple[str, str]] = {
    ClauseKind.MATCHED_UPDATE: ("matched_actions", "update_action"),
    ClauseKind.MATCHED_UPDATE_ALL: ("matched_actions", "update_star_action"),
    ClauseKind.MATCHED_DELETE: ("matched_actions", "delete_action"),
    ClauseKind.NOT_MATCHED_INSERT: ("not_matched_actions", "insert_action"),
    ClauseKind.NOT_MATCHED_INSERT_ALL: ("not_matched_actions", "insert_star_action"),
    ClauseKind.NOT_MATCHED_BY_SOURCE_UPDATE: ("not_matched_by_source_actions", "update_action"),
    ClauseKind.NOT_MATCHED_BY_SOURCE_DELETE: ("not_matched_by_source_actions", "delete_action"),
}


class _Extension(LogicalPlan):
    """A relation that a plugin of the server translates."""

    def __init__(self, message: str, fields: Mapping[str, Any]) -> None:
        super().__init__(None)
        self._message = message
        self._fields = fields

    def plan(self, session: Any) -> Any:
        relation = self._create_proto_relation()
        relation.extension.type_url = f"type.googleapis.com/{self._message}"
        relation.extension.value = encode(self._message, self._fields, session)
        return relation


class ConnectSession:
    """Deltaic in one session of Spark Connect; its methods are those of `ClassicSession`.

    Each method is one request. The server runs a command when it translates the request, so the
    result is fetched at once, and never requested again.

    Parameters
    ----------
    what
        The method that needs the session, for errors.
    hadoop_conf
        Settings that apply to this object only, not to the session.
    """

    def __init__(
        self, spark: SparkSession, what: str, hadoop_conf: Mapping[str, str] | None = None
    ) -> None:
        convert_server_exceptions()
        self._spark: Any = spark
        self._what = what
        self._hadoop_conf = dict(hadoop_conf or {})

    def is_delta_table(self, path: str) -> bool:
        """Whether there is a table at the path."""
        (row,) = self._call("isDeltaTable", self._at(path)).to_pylist()
        return bool(row["is_delta_table"])

    def resolve_name(self, name: str) -> ResolvedTable:
        """Resolve a table in the catalog."""
        (row,) = self._call("resolveName", name=name).to_pylist()
        return ResolvedTable(row["path"], row["name"])

    def rows(self, path: str) -> DataFrame:
        """Return the rows of the table at a path, as the target of a change with the settings."""
        scan = _Extension(_RELATION, {"scan": {"table": self._at(path)}})
        return ConnectDataFrame(scan, self._spark)

    def with_columns_of(self, first: DataFrame, df: DataFrame) -> DataFrame | None:
        """Return a table's DataFrame with the columns of another; None if they differ.

        A column belongs to a plan, so the result has that of the first DataFrame. It reads the
        newest version whenever it is executed.
        """
        plan: Any = first
        return ConnectDataFrame(plan._plan, self._spark) if first.schema == df.schema else None

    def history(self, path: str, limit: int | None) -> DataFrame:
        """Return the commits, newest first."""
        return self._result(self._call("history", self._at(path), limit=limit))

    def detail(self, path: str, name: str | None) -> DataFrame:
        """Describe the table; the name is None if it was found by its path."""
        table = self._at(path) if name is None else {"table_or_view_name": name}
        return self._result(self._call("detail", table))

    def generate(self, path: str, mode: str) -> None:
        """Write manifests."""
        self._call("generate", self._at(path), mode=mode)

    def upgrade_protocol(
        self,
        path: str,
        reader_version: int | None = None,
        writer_version: int | None = None,
        features: Sequence[str] = (),
    ) -> None:
        """Upgrade the protocol of a table, or add features to it."""
        self._call(
            "upgradeProtocol",
            self._at(path),
            readerVersion=reader_version,
            writerVersion=writer_version,
            features=list(features),
        )

    def drop_feature(self, path: str, feature: str, *, truncates_history: bool) -> None:
        """Drop a feature from the protocol of a table."""
        self._call(
            "dropFeature", self._at(path), feature=feature, truncateHistory=truncates_history
        )

    def user_domains(self, path: str) -> dict[str, str]:
        """Return the configuration of each metadata domain of users."""
        rows = self._call("domainMetadata", self._at(path)).to_pylist()
        return {row["domain"]: row["configuration"] for row in rows}

    def set_domain_metadata(self, path: str, domain: str, configuration: str) -> None:
        """Set a metadata domain."""
        table = self._at(path)
        self._call("setDomainMetadata", table, domain=domain, configuration=configuration)

    def remove_domain_metadata(self, path: str, domain: str) -> None:
        """Remove a metadata domain."""
        self._call("removeDomainMetadata", self._at(path), domain=domain)

    def restore(self, path: str, version: str | None, timestamp: str | None) -> DataFrame:
        """Restore an older version; return the result of the statement."""
        table = self._at(path)
        return self._result(self._call("restore", table, version=version, timestamp=timestamp))

    def clone_table(self, path: str, request: CloneRequest) -> None:
        """Clone the table at a path."""
        self._call("clone", self._at(path), **request.to_json())

    def vacuum(self, path: str, arguments: Mapping[str, Any]) -> DataFrame:
        """Run VACUUM; return its result."""
        return self._result(self._call("vacuum", self._at(path), **arguments))

    def convert_to_delta(self, identifier: str, partitioning: str | None) -> ResolvedPath:
        """Run CONVERT TO DELTA; return the path of the table, and its name in the catalog."""
        result = self._call("convertToDelta", identifier=identifier, partitioning=partitioning)
        (row,) = result.to_pylist()
        return ResolvedPath(row["path"], row["name"])

    def create_table(self, definition: Mapping[str, Any]) -> str | None:
        """Create or replace a table, as a builder defines it; return its location, if stated."""
        (row,) = self._call("createTable", **definition).to_pylist()
        location: str | None = row["location"]
        return location

    def optimize(
        self,
        path: str,
        predicate: str | None,
        *,
        z_order_by: Sequence[str] = (),
        is_full: bool = False,
    ) -> DataFrame:
        """Compact the files of a table, or order its rows; return the result of the statement."""
        columns = list(z_order_by)
        arguments = {"predicate": predicate, "zOrderBy": columns, "isFull": is_full}
        return self._result(self._call("optimize", self._at(path), **arguments))

    def purge(self, path: str, predicate: str | None) -> DataFrame:
        """Rewrite the files with deleted rows or dropped columns; return the statement's result."""
        return self._result(self._call("purge", self._at(path), predicate=predicate))

    def delete(self, target: DataFrame, condition: Column | None) -> None:
        """Delete the rows of a table's DataFrame for which the condition is true."""
        fields = {"target": _plan(target), "condition": condition}
        self._fetch(_RELATION, {"delete_from_table": fields})

    def update(self, target: DataFrame, condition: Column | None, assignments: Assignments) -> None:
        """Update the rows of a table's DataFrame for which the condition is true."""
        fields = {"target": _plan(target), "condition": condition}
        self._fetch(_RELATION, {"update_table": {**fields, **_assigned(assignments)}})

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
        actions: dict[str, list[Mapping[str, Any]]] = {}
        for clause in clauses:
            group, action = _ACTIONS[clause.kind]
            values = {} if clause.assignments is None else _assigned(clause.assignments)
            actions.setdefault(group, []).append({"condition": clause.condition, action: values})
        merge = {
            "target": _plan(target),
            "source": _plan(source),
            "condition": condition,
            **actions,
            "with_schema_evolution": evolves_schema,
        }
        if transaction is None:
            return self._result(self._fetch(_RELATION, {"merge_into_table": merge}))
        app_id, version = transaction
        once = {"merge": merge, "app_id": app_id, "version": version}
        return self._result(self._fetch("deltaic.connect.MergeOnce", once))

    def _at(self, path: str) -> Mapping[str, Any]:
        return {"path": {"path": path, "hadoop_conf": self._hadoop_conf}}

    def _call(
        self, method: str, table: Mapping[str, Any] | None = None, **arguments: Any
    ) -> pyarrow.Table:
        given = json.dumps(arguments, ensure_ascii=False)
        return self._fetch(_CALL, {"method": method, "table": table, "arguments": given})

    def _fetch(self, message: str, fields: Mapping[str, Any]) -> pyarrow.Table:
        client = self._spark.client
        plan = _Extension(message, fields).to_proto(client)
        with server_errors(self._what):
            return client.to_table(plan, {})[0]

    def _result(self, table: pyarrow.Table) -> DataFrame:
        # PySpark infers no columns of a table without rows.
        columns = from_arrow_schema(table.schema)
        result: DataFrame = self._spark.createDataFrame(table, columns)
        return result


def _plan(df: Any) -> Any:
    return df._plan


def _assigned(assignments: Assignments) -> Mapping[str, Any]:
    from pyspark.sql.connect.functions import col

    return {"assignments": [{"field": col(name), "value": value} for name, value in assignments]}
