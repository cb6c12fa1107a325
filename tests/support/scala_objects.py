"""Scala objects that tests call over Py4J, to compare them with their Python counterparts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from deltaic.exceptions import DeltaError
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol, log_line
from deltaic.protocol.schema import StructType, write_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The outcome of a call that is an error.
REFUSED = object()


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call of either side; `REFUSED` if it is an error."""
    try:
        return call(*arguments)
    except (DeltaError, Py4JJavaError, PySparkException):
        return REFUSED


class ScalaObjects:
    """The objects of one session's JVM, by their names below ``io.deltaic``."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self.session: Any = spark._jsparkSession
        self.none = self.module("scala.None")

    def __getitem__(self, name: str) -> Any:
        return self.module(f"io.deltaic.{name}")

    def module(self, name: str) -> Any:
        """Return an object by its full name."""
        return getattr(self.java(f"{name}$"), "MODULE$")

    def java(self, name: str) -> Any:
        """Return a class by its full name."""
        found = self._jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def map_of(self, values: Mapping[str, str]) -> Any:
        """Return an immutable map."""
        return self.java("org.apache.spark.api.python.PythonUtils").toScalaMap(dict(values))

    def seq_of(self, values: Sequence[Any]) -> Any:
        """Return an immutable sequence."""
        return self.java("org.apache.spark.api.python.PythonUtils").toSeq(list(values))

    def value(self, scala: Any) -> Any:
        """Return options, maps, sequences and scalars as Python has them."""
        return json.loads(self["spark.util.Json"].of(scala).toString())

    def data_type(self, node: Any) -> Any:
        """Return the Spark type of a type's JSON."""
        return self.java("org.apache.spark.sql.types.DataType").fromJson(json.dumps(node))

    def columns(self, schema: StructType) -> Any:
        """Return the Spark type of a schema."""
        return self.data_type(json.loads(write_schema(schema)))

    def protocol(self, protocol: Protocol) -> Any:
        """Return the action."""
        return self["spark.commit.ActionBody"].protocol(self._body(protocol.to_json()))

    def metadata(self, metadata: Metadata) -> Any:
        """Return the action."""
        return self["spark.commit.ActionBody"].metadata(self._body(metadata.to_json()))

    def _body(self, body: Mapping[str, Any]) -> Any:
        return self["spark.util.Json"].parse(json.dumps(body))

    def snapshot(self, table: Path, *actions: Protocol | Metadata | DomainMetadata) -> Any:
        """Return version 0 of a table that consists of these actions, which are written."""
        names = {Protocol: "protocol", Metadata: "metaData", DomainMetadata: "domainMetadata"}
        (table / "_delta_log").mkdir(parents=True)
        lines = [log_line(names[type(action)], action.to_json()) for action in actions]
        (table / "_delta_log" / f"{0:020}.json").write_text("\n".join(lines), encoding="utf-8")
        return self.log(table).latest()

    def log(self, table: Path) -> Any:
        """Return the log of a table."""
        location = self["spark.catalog.TableLocation"]
        return location.log(self.session, str(table), self.map_of({}))
