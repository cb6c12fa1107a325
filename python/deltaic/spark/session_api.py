"""What the user-facing classes ask of a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaic.exceptions import error
from deltaic.spark.errors import jvm_errors
from deltaic.spark.gateway import register_committer
from deltaic.spark.jvm import is_connect, python_api
from deltaic.spark.ports import JvmTables

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """A table that was found by name."""

    path: str
    name: str


class SessionApi:
    """Deltaic in one session; the committer is registered if it was not.

    Raises
    ------
    InvalidArgumentError
        If the session is one of Spark Connect; `what` says what needs more.
    """

    def __init__(self, spark: SparkSession, what: str) -> None:
        if is_connect(spark):
            raise error("DELTAIC_SPARK_CONNECT_UNSUPPORTED", what=what)
        register_committer(spark)
        self._jvm: Any = spark._jvm
        self._session: Any = spark._jsparkSession
        self._api = python_api(self._jvm)

    @property
    def tables(self) -> JvmTables:
        """The tables as this session sees them."""
        return JvmTables(self._jvm, self._session)

    def is_delta_table(self, path: str) -> bool:
        """Whether there is a table at the path."""
        with jvm_errors():
            return bool(self._api.isDeltaTable(self._session, path))

    def resolve_name(self, name: str) -> ResolvedTable:
        """Find a table in the catalog."""
        with jvm_errors():
            body = json.loads(self._api.resolveName(self._session, name))
        return ResolvedTable(body["path"], body["name"])

    def qualified(self, path: str) -> str:
        """Return a path with its file system, as the log and the catalog show it."""
        with jvm_errors():
            hadoop_path = self._jvm.org.apache.hadoop.fs.Path(path)
            configuration = self._session.sessionState().newHadoopConf()
            file_system = hadoop_path.getFileSystem(configuration)
            return str(file_system.makeQualified(hadoop_path).toString())

    def create_table(self, definition: Mapping[str, Any]) -> None:
        """Create or replace a table, as a builder describes it."""
        with jvm_errors():
            self._api.createTable(self._session, json.dumps(definition, ensure_ascii=False))

    def delete(self, frame: DataFrame, condition: Column | None) -> None:
        """Delete the rows of a table's frame for which the condition is true."""
        matching = None if condition is None else condition._jc
        with jvm_errors():
            self._api.delete(frame._jdf, matching)
