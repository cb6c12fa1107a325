"""Properties without effect: the protocol does not support what they would put to use.

Some writers set a property and leave the protocol as it is. A feature counts from the version on
whose protocol lists it (Protocol § Supported Features), and a new definition lists all that its
metadata puts to use. What a feature says of earlier files, of these it would not be true then.
"""

from __future__ import annotations

from collections.abc import Collection

from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import Feature, all_features, supports, uses
from deltaic.protocol.properties import property_value


def dormant_properties(protocol: Protocol, metadata: Metadata) -> dict[str, Feature]:
    """Return the properties that files were written without, each with its feature."""
    return {
        feature.property_name: feature
        for feature in all_features()
        if feature.property_name is not None
        and feature.binds_earlier_files
        and uses(metadata.configuration, feature)
        and not supports(protocol, feature.name)
    }


def require_none_dormant(
    table: str,
    version: int,
    protocol: Protocol,
    metadata: Metadata,
    unset: Collection[str] = (),
) -> None:
    """Refuse to base a definition on one that would come into force with it, beyond what it says.

    Parameters
    ----------
    unset
        The names of properties that the new definition is without.

    Raises
    ------
    TableStateError
        Naming the property and the feature.
    """
    for name, feature in dormant_properties(protocol, metadata).items():
        if name not in unset:
            raise error(
                "DELTAIC_DORMANT_PROPERTY",
                table=table,
                version=version,
                property=name,
                value=property_value(metadata.configuration, name),
                feature=feature.name,
            )
