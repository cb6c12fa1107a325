"""The API of a session for the user-facing classes, for both kinds of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from deltaic.spark.connect.kind import is_connect, require_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaic.spark.classic_session import ClassicSession
    from deltaic.spark.connect.session import ConnectSession

    #: Both have the same methods.
    SessionApi: TypeAlias = ClassicSession | ConnectSession


def session_api(
    spark: SparkSession, what: str, hadoop_conf: Mapping[str, str] | None = None
) -> SessionApi:
    """Return the API of a session.

    A client of Spark Connect needs no JVM and no jar, and no PySpark that has them.

    Parameters
    ----------
    what
        The method that needs the session, for errors.
    hadoop_conf
        Settings that apply to this object only, not to the session.

    Raises
    ------
    InvalidArgumentError
        If it is not a session.
    TableStateError
        If its JVM, which is in this process, does not have the jar.
    """
    require_session(spark)
    if is_connect(spark):
        from deltaic.spark.connect.session import ConnectSession

        return ConnectSession(spark, what, hadoop_conf)
    from deltaic.spark.classic_session import ClassicSession

    return ClassicSession(spark, hadoop_conf)
