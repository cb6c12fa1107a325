"""The definition of a table that has existing Parquet files: of CONVERT TO DELTA, and of CLONE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deltaic.commands.definitions.create_statement import RequestedDefinition
from deltaic.commands.definitions.definition import DefinitionRequest, define_table
from deltaic.commit.parquet_source import ParquetEntry, ParquetSummary
from deltaic.commit.plan import Definition
from deltaic.exceptions import DeltaError, error
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import Protocol
from deltaic.protocol.columns.column_mapping import MODE, is_mapped
from deltaic.protocol.columns.iceberg_compat import PROPERTIES
from deltaic.protocol.features import supports


@dataclass(frozen=True, slots=True)
class ParquetDefinition:
    """What a definition is made of.

    Attributes
    ----------
    folder
        The path of the files.
    """

    folder: str
    found: ParquetSummary
    entry: ParquetEntry
    any_properties: bool


def parquet_definition(
    request: ParquetDefinition, defaults: Mapping[str, str], now_ms: int
) -> Definition:
    """Return the definition of a new table that has the columns of Parquet files.

    Raises
    ------
    InvalidArgumentError
        If Deltaic cannot write a table with such columns or properties.
    """
    found, entry = request.found, request.entry
    definition_request = DefinitionRequest(
        request.folder,
        RequestedDefinition(
            schema_string=found.schema_string,
            partition_by=found.partition_columns,
            properties=entry.properties,
            description=entry.description,
        ),
        defaults,
        any_properties=request.any_properties,
    )
    try:
        definition = define_table(definition_request, now_ms)
    except DeltaError as problem:
        if problem.condition != "DELTAIC_INVALID_COLUMN_NAME":
            raise
        column = problem.parameters["column"]
        raise error("DELTAIC_CONVERT_COLUMN_NAME", table=request.folder, column=column) from problem
    _require_no_column_ids(request.folder, definition.protocol)
    if is_mapped(definition.metadata.configuration):
        raise _unmet(
            request.folder,
            MODE,
            "a new table with column mapping has other names of columns in its files",
        )
    return definition


def require_met(folder: str, definition: Definition, *, has_statistics: bool) -> None:
    """Refuse properties that require what the files do not have.

    Raises
    ------
    InvalidArgumentError
        If there is such a property.
    """
    protocol, metadata = definition.protocol, definition.metadata
    _require_no_column_ids(folder, protocol)
    if metadata.partition_columns and supports(protocol, "materializePartitionColumns"):
        raise _unmet(
            folder,
            "delta.feature.materializePartitionColumns",
            "it requires the partition columns in the files",
        )
    if not has_statistics and row_tracking.assigns_row_ids(protocol, metadata):
        raise _unmet(
            folder,
            "delta.enableRowTracking",
            "it requires the number of rows of each file, which NO STATISTICS leaves out",
        )


def _require_no_column_ids(folder: str, protocol: Protocol) -> None:
    for version, name in PROPERTIES.items():
        if supports(protocol, f"icebergCompatV{version}"):
            raise _unmet(folder, name, "it requires column IDs in the files")


def _unmet(folder: str, name: str, reason: str) -> DeltaError:
    return error("DELTAIC_CONVERT_PROPERTY_UNMET", table=folder, property=name, reason=reason)
