"""Properties without effect, because the protocol does not support their feature.

Some writers set a property and do not change the protocol. A feature applies from the version whose
protocol lists it (Protocol § Supported Features), and a new definition lists all features that its
metadata makes active. If a feature also applies to earlier files, these would not conform to it. A
feature that only the reader or only the writer features list has an effect: files conform to it.
"""

from __future__ import annotations

from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import Feature, all_features, is_listed
from deltaic.protocol.properties import property_value


def properties_without_feature(protocol: Protocol, metadata: Metadata) -> dict[str, Feature]:
    """Return the properties without effect, each with its feature."""
    return {
        feature.property_name: feature
        for feature in all_features()
        if feature.property_name is not None
        and feature.binds_earlier_files
        and feature.is_set(metadata.configuration)
        and not is_listed(protocol, feature.name)
    }


def require_not_activated(
    table: str, version: int, protocol: Protocol, before: Metadata, after: Metadata
) -> None:
    """Refuse a new definition that would activate a property without effect.

    Parameters
    ----------
    version, protocol, before
        The current version of the table.

    Raises
    ------
    TableStateError
        Naming the property and the feature.
    """
    for name, feature in properties_without_feature(protocol, before).items():
        if feature.is_set(after.configuration):
            raise error(
                "DELTAIC_PROPERTY_WITHOUT_FEATURE",
                table=table,
                version=version,
                property=name,
                value=property_value(before.configuration, name),
                feature=feature.name,
            )
