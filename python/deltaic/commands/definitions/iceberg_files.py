"""Checks of the existing files of a table that becomes compatible with Iceberg."""

from __future__ import annotations

from deltaic.commit.ports import TableAccess, TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata
from deltaic.protocol.columns.iceberg_compat import PROPERTIES

#: By the JVM's reason code.
_REASONS = {
    "deletionVector": "it has a deletion vector",
    "numRecords": "its statistics have no numRecords",
    "partitionColumn": "it does not hold the values of the partition columns",
    "fieldId": "not all columns, elements, keys and values have the field ids of the table",
    "timestamp": "its timestamps have 96 bits (INT96)",
    "layout": "the physical layout of its types is not that of Iceberg",
}


def require_iceberg_compatible_files(
    table: str, compat_version: int, current: TableSnapshot, metadata: Metadata, tables: TableAccess
) -> None:
    """Refuse to enable Iceberg compatibility if an existing file is not compatible.

    For version 1, the protocol requires that every file holds its partition values; for later ones,
    its requirements are about new files. An Iceberg reader needs all files to be compatible, so the
    footer of every file is checked.

    Raises
    ------
    TableStateError
        If a file is not compatible.
    """
    unfit = tables.iceberg_incompatible_file(table, current.version, metadata, compat_version)
    if unfit is not None:
        raise error(
            "DELTAIC_ICEBERG_FILES",
            table=table,
            version=current.version,
            property=PROPERTIES[compat_version],
            file=unfit.path,
            reason=_REASONS.get(unfit.reason, unfit.reason),
        )
