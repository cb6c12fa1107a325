"""Idempotent writes: the options ``txnAppId`` and ``txnVersion``."""

from __future__ import annotations

from collections.abc import Mapping

from deltaic.exceptions import error
from deltaic.protocol.actions import SetTransaction
from deltaic.protocol.numbers import whole_number

_APP_ID = "txnappid"
_VERSION = "txnversion"


def requested_txn(
    table: str, options: Mapping[str, str], now_ms: int | None = None
) -> SetTransaction | None:
    """Return the ``txn`` action that a write commits (Protocol § Transaction Identifiers).

    Parameters
    ----------
    table
        The table, for errors.
    options
        The options of the write, their names in lower case.
    now_ms
        The value of ``lastUpdated``.

    Raises
    ------
    InvalidArgumentError
        If only one of the two options is given, or the version is not a number from 0 to 2**63 - 1.
    """
    app_id, version = options.get(_APP_ID), options.get(_VERSION)
    if app_id is None and version is None:
        return None
    if app_id is None or version is None:
        given, missing = (
            ("txnVersion", "txnAppId") if app_id is None else ("txnAppId", "txnVersion")
        )
        raise error(
            "DELTAIC_TRANSACTION_OPTIONS_INCOMPLETE", table=table, given=given, missing=missing
        )
    number = whole_number(version)
    if number is None or not 0 <= number < 2**63:
        raise error(
            "DELTAIC_INVALID_WRITE_OPTION",
            option="txnVersion",
            value=version,
            valid="a whole number from 0 to 9223372036854775807, which increases with each write",
        )
    return SetTransaction(app_id, number, now_ms)
