"""The clustering columns of a table that gets those of another version or table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deltaic.commit.plan import Definition
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.columns import clustering
from deltaic.protocol.features import supports
from deltaic.protocol.negotiation import protocol_without


def without_excluded_clustering(protocol: Protocol, metadata: Metadata) -> Protocol:
    """Return the protocol without clustering, if the table has partition columns.

    Protocol § Clustered Table: such a table does not support it.
    """
    if metadata.partition_columns and supports(protocol, clustering.FEATURE):
        return protocol_without(protocol, clustering.FEATURE)
    return protocol


def copied_clustering(
    definition: Definition, source: Mapping[str, str], current: Mapping[str, str]
) -> tuple[DomainMetadata, ...]:
    """Return the action that sets the clustering columns; none if they are the same.

    As long as the protocol supports clustering, the domain says that there are no columns.

    Parameters
    ----------
    definition
        The definition that the table gets.
    source
        The metadata domains to copy from.
    current
        The metadata domains of the table.
    """
    before = current.get(clustering.DOMAIN)
    after: DomainMetadata | None = None
    if supports(definition.protocol, clustering.FEATURE):
        configuration = source.get(clustering.DOMAIN)
        after = clustering.clustering_domain(definition.metadata, ())
        if configuration is not None:
            after = replace(after, configuration=configuration)
    elif before is not None:
        return (DomainMetadata(clustering.DOMAIN, before, removed=True),)
    return () if after is None or after.configuration == before else (after,)
