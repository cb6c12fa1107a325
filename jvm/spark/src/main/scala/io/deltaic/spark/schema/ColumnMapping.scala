package io.deltaic.spark.schema

import java.util.Locale

import io.deltaic.protocol.{DeltaicException, Metadata, Protocol, TableFeatures}
import io.deltaic.replay.Snapshot

/** How the columns of a table are found in its data files (Protocol § Column Mapping). */
private[spark] sealed trait ColumnMapping

private[spark] object ColumnMapping {

  /** By logical names. */
  case object NoMapping extends ColumnMapping

  /** By physical names. */
  case object ByName extends ColumnMapping

  /** By field ids; the log still uses physical names. */
  case object ById extends ColumnMapping

  /**
   * The table's mode. The property has no effect where the protocol does not list column mapping
   * (Protocol § Column Mapping); one side of it is enough (docs/decisions/0036).
   */
  def of(table: String, protocol: Protocol, metadata: Metadata): ColumnMapping =
    if (!TableFeatures.isListed(protocol, "columnMapping")) NoMapping
    else
      metadata.configuration.get(ModeProperty).map(_.toLowerCase(Locale.ROOT)) match {
        case None | Some("none") => NoMapping
        case Some("name") => ByName
        case Some("id") => ById
        case Some(other) =>
          throw DeltaicException(
            "DELTAIC_INVALID_TABLE_PROPERTY_VALUE",
            Map("property" -> s"$ModeProperty of $table", "value" -> other)
          )
      }

  /** Whether the columns of a version have physical names. */
  def isUsed(snapshot: Snapshot): Boolean =
    of(snapshot.table.toString, snapshot.protocol, snapshot.metadata) != NoMapping

  private val ModeProperty = "delta.columnMapping.mode"
}
