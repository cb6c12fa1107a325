"""Files that a table has when it is to become compatible with Iceberg."""

from __future__ import annotations

from deltaic.commit.ports import TableHeader, Tables
from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata
from deltaic.protocol.column_mapping import ICEBERG_COMPAT_V2

#: By the word that the JVM has for it.
_REASONS = {
    "deletionVector": "rows of it are deleted by a deletion vector",
    "numRecords": "the log does not say how many rows it has",
    "partitionColumn": "it does not hold the values of the partition columns",
    "fieldId": "not all columns, elements, keys and values in it have the ids that the table gives",
    "timestamp": "timestamps in it have 96 bits",
    "layout": "types in it are not laid out as Iceberg has them",
}


def require_fit_files(
    table: str, property_name: str, current: TableHeader, metadata: Metadata, tables: Tables
) -> None:
    """Refuse to make a promise that files break which are there already.

    The protocol asks for version 1 that every file holds its partition values; for version 2 it
    speaks of new files. It would be of little use to an Iceberg reader that only some files fit, so
    every one is looked at, by its footer.

    Raises
    ------
    TableStateError
        If a file does not fit.
    """
    unfit = tables.unfit_for_iceberg(
        table, current.version, metadata, numbers_columns=property_name == ICEBERG_COMPAT_V2
    )
    if unfit is not None:
        raise error(
            "DELTAIC_ICEBERG_FILES",
            table=table,
            version=current.version,
            property=property_name,
            file=unfit.path,
            reason=_REASONS.get(unfit.reason, unfit.reason),
        )
