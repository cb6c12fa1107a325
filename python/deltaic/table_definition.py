"""The methods of `DeltaTable` for the table's definition, which do not read or change rows.

In the examples, `path` and ``sales.orders`` are tables of one file with the ids 0 to 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deltaic.arguments import require_boolean, require_string, wrong_type
from deltaic.spark.session_api import session_api

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from deltaic.spark.session_api import SessionApi


class TableDefinition:
    """Protocol, properties and metadata domains of a table; base class of `DeltaTable`."""

    _spark: SparkSession
    _path: str
    _name: str | None
    _hadoop_conf: Mapping[str, str]

    def detail(self) -> DataFrame:
        """Return one row that describes the table, as DESCRIBE DETAIL does.

        Returns
        -------
        DataFrame
            ``format`` string, ``id`` string, ``name`` string, ``description`` string,
            ``location`` string, ``createdAt`` timestamp, ``lastModified`` timestamp,
            ``partitionColumns`` array<string>, ``clusteringColumns`` array<string>, ``numFiles``
            bigint, ``sizeInBytes`` bigint, ``properties`` map<string, string>,
            ``minReaderVersion`` int, ``minWriterVersion`` int, ``tableFeatures`` array<string>.

        Notes
        -----
        Protocol § Change Metadata, Protocol § Protocol Evolution.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.detail().select("format", "numFiles").collect()
        [Row(format='delta', numFiles=1)]
        """
        return self._api("DeltaTable.detail").detail(self._path, self._name)

    def generate(self, mode: str) -> None:
        """Write manifests, for engines that do not read the log.

        The data files of each partition are listed in ``_symlink_format_manifest``, one path per
        line. If the table property ``delta.compatibility.symlinkFormatManifest.enabled`` is true,
        each commit updates the manifests, and this method is not needed.

        Parameters
        ----------
        mode
            ``symlink_format_manifest``.

        Raises
        ------
        InvalidArgumentError
            If the mode is another one.
        TableStateError
            If the table has deletion vectors or column mapping.

        Examples
        --------
        >>> DeltaTable.forPath(spark, path).generate("symlink_format_manifest")
        """
        require_string("mode", mode)
        self._api("DeltaTable.generate").generate(self._path, mode)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Upgrade the protocol of the table; an upgrade cannot be undone.

        A version that is lower than that of the table only adds the features that it implies.

        Parameters
        ----------
        readerVersion
            The reader version, from 1 to 3.
        writerVersion
            The writer version, from 1 to 7.

        Raises
        ------
        InvalidArgumentError
            If there is no such version.

        Notes
        -----
        Protocol § Protocol Evolution.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.upgradeTableProtocol(3, 7)
        >>> table.detail().select("minReaderVersion", "minWriterVersion").first()
        Row(minReaderVersion=3, minWriterVersion=7)
        """
        versions = {"readerVersion": readerVersion, "writerVersion": writerVersion}
        for name, version in versions.items():
            if not isinstance(version, int) or isinstance(version, bool):
                raise wrong_type(name, version, "it needs to be an integer")
        api = self._api("DeltaTable.upgradeTableProtocol")
        api.upgrade_protocol(self._path, readerVersion, writerVersion)

    def addFeatureSupport(self, featureName: str) -> None:
        """Add support for a feature, and for those that it requires, to the table's protocol.

        Parameters
        ----------
        featureName
            Its name in the protocol.

        Raises
        ------
        InvalidArgumentError
            If there is no such feature.
        ProtocolError
            If this version of Deltaic could no longer write to the table.

        Notes
        -----
        Protocol § Table Features.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.addFeatureSupport("deletionVectors")
        >>> "deletionVectors" in table.detail().first().tableFeatures
        True
        """
        require_string("featureName", featureName)
        api = self._api("DeltaTable.addFeatureSupport")
        api.upgrade_protocol(self._path, features=(featureName,))

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Drop a feature from the table's protocol, so that engines need not support it.

        Its traces are removed first: files are rewritten without deletion vectors, wider types or
        physical names, and without row IDs. If older versions depend on the feature, they are
        protected by the feature ``checkpointProtection``.

        Parameters
        ----------
        featureName
            Its name in the protocol.
        truncateHistory
            Whether versions that use it are deleted instead of protected. They have to be older
            than ``delta.dropFeatureTruncateHistory.retentionDuration``.

        Raises
        ------
        InvalidArgumentError
            If the table does not support the feature, or it cannot be dropped.
        TableStateError
            If versions that are to be deleted are not old enough yet; says when they are.

        Notes
        -----
        Protocol § Supported Features.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.addFeatureSupport("domainMetadata")
        >>> table.dropFeatureSupport("domainMetadata")
        >>> "domainMetadata" in table.detail().first().tableFeatures
        False
        """
        require_string("featureName", featureName)
        if truncateHistory is not None:
            require_boolean("truncateHistory", truncateHistory)
        api = self._api("DeltaTable.dropFeatureSupport")
        api.drop_feature(self._path, featureName, truncates_history=truncateHistory is True)

    def domainMetadata(self) -> dict[str, str]:
        """Return the metadata domains of users.

        delta-spark has no such method.

        Returns
        -------
        dict
            The configuration of each domain, by the domain's name. System domains, whose names
            begin with ``delta.``, are not included.

        Notes
        -----
        Protocol § Domain Metadata.

        Examples
        --------
        >>> DeltaTable.forPath(spark, path).domainMetadata()
        {}
        """
        return self._api("DeltaTable.domainMetadata").user_domains(self._path)

    def setDomainMetadata(self, domain: str, configuration: str) -> None:
        """Set a metadata domain, in its own commit.

        The table must support the feature: create it with the table property
        ``delta.feature.domainMetadata = supported``.

        Parameters
        ----------
        domain
            Its name, such as ``com.example.pipeline``; it may already exist.
        configuration
            The configuration of the domain, often JSON.

        Raises
        ------
        InvalidArgumentError
            If the name begins with ``delta.``, which is reserved for system domains.
        ProtocolError
            If the table does not support the feature ``domainMetadata``.
        ConcurrentTransactionException
            If another writer set or removed the same domain concurrently.

        Notes
        -----
        Protocol § Domain Metadata.

        Examples
        --------
        >>> replaced = spark.range(3).writeTo("sales.orders").using("delta")
        >>> replaced.tableProperty("delta.feature.domainMetadata", "supported").replace()
        >>> orders = DeltaTable.forName(spark, "sales.orders")
        >>> orders.setDomainMetadata("com.example.pipeline", "step 7")
        >>> orders.domainMetadata()
        {'com.example.pipeline': 'step 7'}
        """
        require_string("domain", domain)
        api = self._api("DeltaTable.setDomainMetadata")
        api.set_domain_metadata(self._path, domain, configuration)

    def removeDomainMetadata(self, domain: str) -> None:
        """Remove a metadata domain, if it exists.

        Parameters
        ----------
        domain
            Its name.

        Raises
        ------
        InvalidArgumentError
            If the name begins with ``delta.``, which is reserved for system domains.
        ProtocolError
            If the table does not support the feature ``domainMetadata``.
        ConcurrentTransactionException
            If another writer set or removed the same domain concurrently.

        Notes
        -----
        Protocol § Domain Metadata.

        Examples
        --------
        >>> replaced = spark.range(3).writeTo("sales.orders").using("delta")
        >>> replaced.tableProperty("delta.feature.domainMetadata", "supported").replace()
        >>> orders = DeltaTable.forName(spark, "sales.orders")
        >>> orders.setDomainMetadata("com.example.pipeline", "step 7")
        >>> orders.removeDomainMetadata("com.example.pipeline")
        >>> orders.domainMetadata()
        {}
        """
        require_string("domain", domain)
        self._api("DeltaTable.removeDomainMetadata").remove_domain_metadata(self._path, domain)

    def _api(self, what: str) -> SessionApi:
        """Return the API of the session for a method, with the settings of this table."""
        return session_api(self._spark, what, self._hadoop_conf)
