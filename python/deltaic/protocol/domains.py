"""The configuration of system metadata domains (Protocol § Domain Metadata)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deltaic.exceptions import error

FEATURE = "domainMetadata"


def domain_body(table: str, domain: str, configuration: str) -> Mapping[str, Any]:
    """Return the configuration of a system domain, which is a JSON object.

    Raises
    ------
    ProtocolError
        If it is something else.
    """
    try:
        body = json.loads(configuration)
    except (ValueError, RecursionError) as problem:
        raise _invalid(table, domain, f"it is not JSON: {problem}") from problem
    if not isinstance(body, dict):
        raise _invalid(table, domain, f"it is {configuration}, not an object")
    return body


def _invalid(table: str, domain: str, reason: str) -> Exception:
    return error("DELTAIC_DOMAIN_INVALID", table=table, domain=domain, reason=reason)
