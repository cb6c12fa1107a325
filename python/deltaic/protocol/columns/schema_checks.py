"""Checks of the schema of a table, and of the columns of rows written to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from deltaic.exceptions import error
from deltaic.protocol.columns.column_mapping import PHYSICAL_NAME
from deltaic.protocol.columns.identity import check_identity
from deltaic.protocol.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    UserDefinedType,
    folded_name,
    leaf_types,
    map_fields,
    structs,
    walk,
)

#: Some Parquet readers do not support these in column names; column mapping lifts the limit.
_INVALID_NAME_CHARACTERS = frozenset(" ,;{}()\n\t=")


def check_table_schema(
    table: str,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    any_names: bool = False,
    columnless: bool = False,
    before: StructType | None = None,
) -> None:
    """Refuse a schema that a new or replaced table cannot have.

    Parameters
    ----------
    any_names
        Whether files use physical names, so that column names may have any character.
    columnless
        Whether a schema without columns is allowed.
    before
        The current columns of the table; unsupported types that another writer gave them are
        retained.

    Raises
    ------
    InvalidArgumentError
        If names are duplicates or not allowed, a type is not supported in Delta tables, or the
        partition columns are not valid.
    """
    if not schema.fields and not columnless:
        raise error("DELTAIC_SCHEMA_EMPTY", table=table)
    check_duplicates(table, schema)
    for path, column in walk(schema):
        check_identity(table, path, column, partition_columns)
        forbidden = not any_names and _INVALID_NAME_CHARACTERS.intersection(column.name)
        if forbidden or not column.name:
            raise error("DELTAIC_INVALID_COLUMN_NAME", table=table, column=path)
    _check_types(table, schema, before or StructType())
    _check_partition_columns(table, schema, partition_columns)


def check_duplicates(table: str, schema: StructType) -> None:
    """Refuse columns, or fields of one struct, whose names differ only in case.

    Raises
    ------
    InvalidArgumentError
        If there are any.
    """
    for prefix, struct in structs(schema):
        spellings: dict[str, list[str]] = {}
        for column in struct.fields:
            spellings.setdefault(folded_name(column.name), []).append(prefix + column.name)
        for same in spellings.values():
            if len(same) > 1:
                raise error("DELTAIC_DUPLICATE_COLUMNS", table=table, columns=", ".join(same))


def check_nested_not_null(table: str, schema: StructType) -> None:
    """Refuse NOT NULL within arrays and maps, which other engines do not enforce.

    Raises
    ------
    InvalidArgumentError
        If there is such a field.
    """
    for column in _not_null_in_collections(schema, "", within=False):
        raise error("DELTAIC_NESTED_NOT_NULL", table=table, column=column)


def _not_null_in_collections(data_type: DataType, path: str, *, within: bool) -> Iterator[str]:
    match data_type:
        case StructType(fields=fields):
            for field in fields:
                if within and not field.nullable:
                    yield path + field.name
                yield from _not_null_in_collections(
                    field.type, f"{path}{field.name}.", within=within
                )
        case ArrayType(element=element):
            yield from _not_null_in_collections(element, f"{path}element.", within=True)
        case MapType(key=key, value=value):
            yield from _not_null_in_collections(key, f"{path}key.", within=True)
            yield from _not_null_in_collections(value, f"{path}value.", within=True)


def resolve_partition_columns(
    table: str, schema: StructType, requested: Sequence[str]
) -> tuple[str, ...]:
    """Return the partition columns in the schema's own spelling.

    Raises
    ------
    InvalidArgumentError
        If a column is not in the schema.
    """
    resolved = []
    for name in requested:
        column = schema.find(name)
        if column is None:
            columns = ", ".join(f.name for f in schema.fields)
            raise error(
                "DELTAIC_PARTITION_COLUMN_NOT_FOUND", table=table, column=name, columns=columns
            )
        resolved.append(column.name)
    return tuple(resolved)


def extra_columns(current: StructType, written: StructType) -> list[str]:
    """Return the dotted paths of fields that `written` has and the table does not have.

    Only structs are compared: other differences are casts, which Spark checks.
    """
    extra = []
    by_name = {folded_name(field.name): field for field in current.fields}
    for column in written.fields:
        existing = by_name.get(folded_name(column.name))
        if existing is None:
            extra.append(column.name)
        elif isinstance(existing.type, StructType) and isinstance(column.type, StructType):
            inner = extra_columns(existing.type, column.type)
            extra += [f"{column.name}.{name}" for name in inner]
    return extra


def same_names(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether two lists name the same columns in the same order, ignoring case."""
    return [folded_name(n) for n in left] == [folded_name(n) for n in right]


def _check_types(table: str, schema: StructType, before: StructType) -> None:
    existing = {(physical, unknown) for _, physical, unknown in _unknown_types(before)}
    for path, physical, unknown in _unknown_types(schema):
        if (physical, unknown) not in existing:
            raise error("DELTAIC_UNSUPPORTED_TYPE", table=table, column=path, type=unknown)


def _unknown_types(schema: StructType) -> Iterator[tuple[str, str, str]]:
    """Yield the types that the protocol does not list.

    Each has the path of its column, and the path of physical names, which a rename does not change.
    """
    in_files = map_fields(schema, lambda c: replace(c, name=c.metadata.get(PHYSICAL_NAME, c.name)))
    for (path, column), (physical, _) in zip(walk(schema), walk(in_files), strict=True):
        if isinstance(column.type, StructType):
            continue
        for leaf in leaf_types(column.type):
            if not leaf.is_known:
                yield path, physical, leaf.name


def _kind(data_type: DataType) -> str:
    """Return the SQL name of a type, without its parts."""
    match data_type:
        case PrimitiveType(name=name):
            return name.upper()
        case StructType():
            return "STRUCT"
        case ArrayType():
            return "ARRAY"
        case MapType():
            return "MAP"
        case UserDefinedType():
            return "UDT"


def _check_partition_columns(
    table: str, schema: StructType, partition_columns: Sequence[str]
) -> None:
    for name, count in Counter(partition_columns).items():
        if count > 1:
            raise error("DELTAIC_DUPLICATE_COLUMNS", table=table, columns=f"{name}, {name}")
        column: Field | None = schema.find(name)
        if column is not None and (
            not isinstance(column.type, PrimitiveType) or column.type.name in ("variant", "void")
        ):
            raise error(
                "DELTAIC_PARTITION_COLUMN_TYPE", table=table, column=name, type=_kind(column.type)
            )
    if schema.fields and len(partition_columns) == len(schema.fields):
        raise error("DELTAIC_NO_DATA_COLUMNS", table=table)
