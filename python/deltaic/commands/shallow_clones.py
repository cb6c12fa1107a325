"""The shallow clones of a table, as far as the table knows them.

A shallow clone has its files in the directory of its source. A metadata domain of the source names
its shallow clones, so that VACUUM keeps the files that they need.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from deltaic.commands.domain_metadata import set_domain_metadata
from deltaic.commit.notices import warn_once
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import RetryPolicy
from deltaic.exceptions import ConcurrentModificationError, DeltaError
from deltaic.protocol import domains
from deltaic.protocol.features import supports

DOMAIN = "deltaic.shallowClones"

#: How often the domain is set again after another clone was registered concurrently.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class ShallowClone:
    """A clone: its table id, since another table may be at the path later, and its path."""

    id: str
    path: str


def shallow_clones(table: str, configuration: str | None) -> tuple[ShallowClone, ...]:
    """Return the clones that the domain of a table names.

    Raises
    ------
    ProtocolError
        If the domain has been set to something else.
    """
    if configuration is None:
        return ()
    body = domains.domain_body(table, DOMAIN, configuration)
    return tuple(ShallowClone(clone["id"], clone["path"]) for clone in body.get("clones", ()))


def register_shallow_clone(
    source: str, path: str, clone_id: str, tables: TableAccess, policy: RetryPolicy
) -> None:
    """Let a table know of a shallow clone.

    A table that does not support metadata domains, or that cannot be written, does not know its
    clones.
    """
    clone = ShallowClone(clone_id, path)
    for _ in range(_ATTEMPTS):
        current = tables.snapshot(source)
        if current is None or not supports(current.protocol, domains.FEATURE):
            return
        try:
            known = shallow_clones(source, current.domains.get(DOMAIN))
            if clone in known:
                return
            # A path has one table: the clone that was there before is gone.
            clones = [asdict(c) for c in (*(c for c in known if c.path != path), clone)]
            configuration = json.dumps({"clones": clones}, separators=(",", ":"))
            set_domain_metadata(source, DOMAIN, configuration, tables, policy)
            return
        except ConcurrentModificationError:
            continue
        except DeltaError as problem:
            warn_once(
                source,
                path,
                f"{source}: the shallow clone {path} is not registered in the table, whose VACUUM "
                f"may delete files that the clone needs: {problem}",
            )
            return
