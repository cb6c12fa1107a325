"""The commands of delta-spark that Deltaic does not support yet: each raises an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from deltaic.exceptions import unsupported_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def refuse(command: str) -> NoReturn:
    """Refuse a command, with advice on what to use instead.

    Parameters
    ----------
    command
        A key of ``unsupported-commands.json``.

    Raises
    ------
    InvalidArgumentError
        Always; it is also PySpark's `AnalysisException`.
    """
    raise unsupported_command(command)


class UnsupportedCommands:
    """Methods with the names and signatures of delta-spark that raise an error."""

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
    ) -> NoReturn:
        """Refuse to convert Parquet files to a Delta table: not supported yet.

        Parameters
        ----------
        sparkSession
            The session to work in.
        identifier
            The files, such as ``parquet.`/data/files` ``.
        partitionSchema
            The partition columns and their types.

        Raises
        ------
        InvalidArgumentError
            Always. The message says what works instead.
        """
        refuse("CONVERT TO DELTA")
