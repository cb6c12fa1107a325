"""The shallow clones of a table, as far as the table knows them.

A shallow clone has its files in the directory of its source. A metadata domain of the source names
its shallow clones, so that VACUUM keeps the files that they need.
"""

from __future__ import annotations

import json
import logging

from deltaic.commands.domain_metadata import commit_domain
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import RetryPolicy
from deltaic.exceptions import ConcurrentModificationError, DeltaError, error
from deltaic.protocol import domains
from deltaic.protocol.actions import DomainMetadata
from deltaic.protocol.features import supports

DOMAIN = "deltaic.shallowClones"

#: How often the domain is set again after another clone was registered concurrently.
_ATTEMPTS = 20

_logger = logging.getLogger("deltaic")


def shallow_clones(table: str, configuration: str | None) -> tuple[str, ...]:
    """Return the paths of the clones that the domain of a table names.

    Raises
    ------
    ProtocolError
        If the domain has been set to something else.
    """
    if configuration is None:
        return ()
    paths = domains.domain_body(table, DOMAIN, configuration).get("clones")
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        reason = "it is no list of paths"
        raise error("DELTAIC_DOMAIN_INVALID", table=table, domain=DOMAIN, reason=reason)
    return tuple(paths)


def register_shallow_clone(
    source: str, clone: str, tables: TableAccess, policy: RetryPolicy
) -> None:
    """Add a shallow clone to the domain of its source.

    A source that does not support metadata domains, or that cannot be written, does not know its
    clones; that it cannot be written is logged.
    """
    problem: DeltaError | None = None
    for _ in range(_ATTEMPTS):
        current = tables.snapshot(source)
        if current is None or not supports(current.protocol, domains.FEATURE):
            return
        try:
            known = shallow_clones(source, current.domains.get(DOMAIN))
            if clone in known:
                return
            configuration = json.dumps({"clones": [*known, clone]}, separators=(",", ":"))
            # The list is that of the version which the commit is based on.
            action = DomainMetadata(DOMAIN, configuration)
            commit_domain(current, source, action, tables, policy)
            return
        except ConcurrentModificationError as conflict:
            problem = conflict
        except DeltaError as failure:
            problem = failure
            break
    _logger.warning(
        "%s: the shallow clone %s is not registered in the table, whose VACUUM may delete files "
        "that the clone needs: %s",
        source,
        clone,
        problem,
    )
