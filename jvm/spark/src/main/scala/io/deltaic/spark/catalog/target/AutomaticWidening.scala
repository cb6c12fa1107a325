package io.deltaic.spark.catalog.target

import java.util.Locale

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.DataType

import io.deltaic.protocol.TableFeatures
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.schema.TypeChange
import io.deltaic.spark.util.SessionSettings
import io.deltaic.spark.write.SchemaEvolution

/**
 * Decides which columns take the wider type of the written rows, if a write may evolve the schema: for all changes that
 * the protocol lists, as in delta-spark (Protocol § Type Widening). All writers use it.
 */
private[spark] object AutomaticWidening {

  val Setting = "typeWidening.allowAutomaticWidening"
  private val Always = "always"

  /** Whether a column of the first type is widened to the second. */
  def of(table: DeltaicTable): (DataType, DataType) => Boolean =
    if (!isEnabled(table)) (_, _) => false
    else
      mode(table.spark) match {
        case "never" => (_, _) => false
        case "same_type" => SchemaEvolution.isWider
        case _ if isReadByIceberg(table) => SchemaEvolution.isWiderInIceberg
        case _ => TypeChange.widens
      }

  /**
   * The reason why a column of the first type is not widened to the second, though the protocol and the table allow
   * it: the session does not. Types that Parquet stores alike change in any table.
   */
  def withheld(table: DeltaicTable): (DataType, DataType) => Option[String] = {
    val widens = of(table)
    val allowed = if (isEnabled(table)) mode(table.spark) else Always
    (own, other) =>
      Option.when(
        allowed != Always && TypeChange.widens(own, other) && !widens(own, other) &&
        !TypeChange.isStoredAlike(own, other)
      )(s"${SessionSettings.Prefix}$Setting is $allowed")
  }

  /**
   * Whether values that a column cannot hold even after widening are refused. A table with type widening
   * must not truncate a value that a wider type could hold.
   */
  def refusesCuts(table: DeltaicTable): Boolean = isEnabled(table) && mode(table.spark) != "never"

  private def isEnabled(table: DeltaicTable): Boolean =
    TableFeatures.isEnabled(table.snapshot.protocol, table.snapshot.metadata, "typeWidening")

  private def isReadByIceberg(table: DeltaicTable): Boolean =
    TableFeatures.activeIcebergVersion(table.snapshot.protocol, table.snapshot.metadata).isDefined

  private def mode(spark: SparkSession): String =
    SessionSettings.parsed(spark, Setting, "it is always, same_type or never") { text =>
      Some(text.toLowerCase(Locale.ROOT)).filter(Set(Always, "same_type", "never"))
    }.getOrElse(Always)
}
