"""Properties without effect: the protocol does not support what they would put to use.

Some writers set a property and leave the protocol as it is. A feature counts from the version on
whose protocol lists it (Protocol § Supported Features), and a new definition lists all that its
metadata puts to use. What a feature says of earlier files, of these it would not be true then.
A feature that only readers or only writers are told of has an effect: files are as it says.
"""

from __future__ import annotations

from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import Feature, all_features, is_listed
from deltaic.protocol.properties import property_value


def dormant_properties(protocol: Protocol, metadata: Metadata) -> dict[str, Feature]:
    """Return the properties that files were written without, each with its feature."""
    return {
        feature.property_name: feature
        for feature in all_features()
        if feature.property_name is not None
        and feature.binds_earlier_files
        and feature.is_set(metadata.configuration)
        and not is_listed(protocol, feature.name)
    }


def require_still_dormant(
    table: str, version: int, protocol: Protocol, before: Metadata, after: Metadata
) -> None:
    """Refuse a new definition that still has such a property: with it, that would come into force.

    Parameters
    ----------
    version, protocol, before
        The table as it is.

    Raises
    ------
    TableStateError
        Naming the property and the feature.
    """
    for name, feature in dormant_properties(protocol, before).items():
        if feature.is_set(after.configuration):
            raise error(
                "DELTAIC_DORMANT_PROPERTY",
                table=table,
                version=version,
                property=name,
                value=property_value(before.configuration, name),
                feature=feature.name,
            )
