"""GENERATE: manifests for engines that do not read the log."""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.commands.rows import RowSet
from deltaic.commit.message import Message
from deltaic.commit.ports import TableAccess
from deltaic.exceptions import error
from deltaic.protocol.columns.column_mapping import has_physical_names

_MODE = "symlink_format_manifest"


@dataclass(frozen=True, slots=True)
class Generate(Message):
    """The arguments; `mode` says what is generated."""

    table: str
    mode: str


def generate(arguments: Generate, tables: TableAccess) -> RowSet:
    """Write the symlink manifests of all partitions, and delete those of others. There are no rows.

    Raises
    ------
    InvalidArgumentError
        If the mode is another one.
    TableStateError
        If there is no table, or if engines that read manifests would return wrong rows, because the
        table has column mapping or deletion vectors.
    """
    table = arguments.table
    if arguments.mode.casefold() != _MODE:
        raise error(
            "DELTAIC_GENERATE_MODE_UNSUPPORTED", table=table, mode=arguments.mode, modes=_MODE
        )
    current = tables.snapshot(table)
    if current is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    if has_physical_names(current.protocol, current.metadata):
        raise error("DELTAIC_MANIFEST_OF_COLUMN_MAPPING", table=table, version=current.version)
    tables.generate_manifests(table)
    return RowSet("", [])
