"""What the protocol's own metadata domains say (Protocol § Domain Metadata)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deltaic.exceptions import error

FEATURE = "domainMetadata"


def domain_body(table: str, domain: str, configuration: str) -> Mapping[str, Any]:
    """Return a domain's configuration, which is a JSON object in each domain of the protocol's.

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
        raise _invalid(table, domain, f"it is {configuration}, and no object")
    return body


def _invalid(table: str, domain: str, reason: str) -> Exception:
    return error("DELTAIC_DOMAIN_INVALID", table=table, domain=domain, reason=reason)
