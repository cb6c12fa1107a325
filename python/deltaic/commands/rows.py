"""Rows that a command returns, before they are converted to a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from deltaic.commit.message import Message, not_in_json
from deltaic.resources import load_json


@dataclass(frozen=True, slots=True)
class RowSet(Message):
    """Rows with their schema.

    Attributes
    ----------
    schema
        Column names and types, in Spark's DDL.
    rows
        JSON values by column name; timestamps in the format of `timestamp_text`.
    """

    schema: str = field(metadata=not_in_json())
    rows: Sequence[Mapping[str, Any]]


def result_schema(command: str) -> str:
    """Return the columns of a command's rows, in Spark's DDL; the JVM reads the same resource."""
    return ", ".join(load_json("command-results.json")[command])


def timestamp_text(timestamp_ms: int) -> str:
    """Format a time so that it does not depend on the session time zone."""
    seconds, milliseconds = divmod(timestamp_ms, 1000)
    moment = datetime.fromtimestamp(seconds, tz=timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"
