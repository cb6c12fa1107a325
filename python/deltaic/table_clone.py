"""The methods of `DeltaTable` that clone the table.

In the examples, `path` is a table of one file with the ids 0 to 9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltaic.arguments import require_boolean, require_string, require_whole_number, string_values
from deltaic.commands.clone import CloneRequest
from deltaic.table_definition import TableDefinition

if TYPE_CHECKING:
    from typing_extensions import Self

#: An absolute path, or a URI; anything else is a name.
_PATH = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


class TableClones(TableDefinition):
    """CLONE; base class of `DeltaTable`."""

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Clone the newest version: create a table with the same rows and definition.

        A shallow clone shares the files of this table; later changes of either table do not affect
        the other. A deep clone copies the files. With `replace`, a clone that exists is brought up
        to date: only the files that it does not have are copied, and an interrupted clone is
        continued. A clone has its own history and its own row IDs.

        Parameters
        ----------
        target
            The name of the clone, or its absolute path.
        isShallow
            Whether the clone shares the files.
        replace
            Whether a table that exists is replaced.
        properties
            Table properties of the clone, in addition to those of this table.

        Returns
        -------
        DeltaTable
            The clone.

        Raises
        ------
        InvalidArgumentError
            If a property is not valid.
        TableStateError
            If the clone exists and is not replaced, or a file does not exist.
        ConcurrentModificationError
            If another commit changed the clone concurrently.

        Notes
        -----
        Protocol § Add File and Remove File: paths of files may be absolute. Protocol § Deletion
        Vector Descriptor Schema: storage type ``p``.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> copy = table.clone(path + "-clone", isShallow=True)
        >>> copy.delete("id > 2")
        >>> table.toDF().count(), copy.toDF().count()
        (10, 3)
        """
        return self._clone("DeltaTable.clone", target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Clone an older version; see `clone`.

        Parameters
        ----------
        version
            The version.
        target
            The name of the clone, or its absolute path.
        isShallow
            Whether the clone shares the files.
        replace
            Whether a table that exists is replaced.
        properties
            Table properties of the clone, in addition to those of this table.

        Returns
        -------
        DeltaTable
            The clone.

        Raises
        ------
        InvalidArgumentError, TableStateError, ConcurrentModificationError
            As for `clone`; also if the version cannot be read.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.delete("id > 2")
        >>> table.cloneAtVersion(0, path + "-clone").toDF().count()
        10
        """
        require_whole_number("version", version, "it needs to be an integer from 0 on", minimum=0)
        return self._clone(
            "DeltaTable.cloneAtVersion",
            target,
            isShallow,
            replace,
            properties,
            version=str(version),
        )

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Clone the newest version that was committed at or before a timestamp; see `clone`.

        Parameters
        ----------
        timestamp
            A date or timestamp, in the session's time zone unless it names another one.
        target
            The name of the clone, or its absolute path.
        isShallow
            Whether the clone shares the files.
        replace
            Whether a table that exists is replaced.
        properties
            Table properties of the clone, in addition to those of this table.

        Returns
        -------
        DeltaTable
            The clone.

        Raises
        ------
        InvalidArgumentError, TableStateError, ConcurrentModificationError
            As for `clone`; also if the timestamp is before the first version or after the last.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> created = table.history(1).first().timestamp
        >>> table.cloneAtTimestamp(str(created), path + "-clone").toDF().count()
        10
        """
        require_string("timestamp", timestamp)
        return self._clone(
            "DeltaTable.cloneAtTimestamp",
            target,
            isShallow,
            replace,
            properties,
            timestamp=timestamp,
        )

    def _clone(
        self,
        method: str,
        target: str,
        is_shallow: bool,
        replaces: bool,
        properties: Mapping[str, str] | None,
        *,
        version: str | None = None,
        timestamp: str | None = None,
    ) -> Self:
        require_string("target", target)
        require_boolean("isShallow", is_shallow)
        require_boolean("replace", replaces)
        is_path = _PATH.match(target) is not None
        request = CloneRequest(
            target,
            is_path,
            is_shallow,
            replaces,
            string_values("properties", properties or {}),
            version,
            timestamp,
        )
        self._api(method).clone_table(self._path, request)
        tables: Any = type(self)  # DeltaTable, which this module cannot import
        clone: Self = (
            tables.forPath(self._spark, target, self._hadoop_conf)
            if is_path
            else tables.forName(self._spark, target)
        )
        return clone
