package io.deltaic.spark.catalog

import java.util.Locale

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.DataType

import io.deltaic.protocol.TableFeatures
import io.deltaic.spark.SessionSettings
import io.deltaic.spark.scan.TypeChange
import io.deltaic.spark.write.SchemaEvolution

/**
 * Which columns take the wider type of the rows that are written to them, where a write may change the columns: all that
 * the protocol lists, as delta-spark does (Protocol § Type Widening). Every writer asks here.
 */
private[spark] object AutomaticWidening {

  val Setting = "typeWidening.allowAutomaticWidening"
  private val Always = "always"

  /** Whether the column of the first type becomes one of the second. */
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
   * Why a column of the first type does not become one of the second, though the protocol lists the change and the table
   * allows it: the session does not. Types that Parquet stores alike change in any table.
   */
  def withheld(table: DeltaicTable): (DataType, DataType) => Option[String] = {
    val widens = of(table)
    val known = if (isEnabled(table)) mode(table.spark) else Always
    (own, other) =>
      Option.when(
        known != Always && TypeChange.widens(own, other) && !widens(own, other) &&
        !TypeChange.isStoredAlike(own, other)
      )(s"${SessionSettings.Prefix}$Setting is $known")
  }

  /**
   * Whether values that a column cannot hold even then are refused. A table that widens its columns
   * says that no value is to be cut for want of a wider type.
   */
  def refusesCuts(table: DeltaicTable): Boolean = isEnabled(table) && mode(table.spark) != "never"

  private def isEnabled(table: DeltaicTable): Boolean =
    TableFeatures.isEnabled(table.snapshot.protocol, table.snapshot.metadata, "typeWidening")

  private def isReadByIceberg(table: DeltaicTable): Boolean =
    Seq("icebergCompatV1", "icebergCompatV2").exists(
      TableFeatures.isActive(table.snapshot.protocol, table.snapshot.metadata, _)
    )

  private def mode(spark: SparkSession): String =
    SessionSettings.get(spark, Setting).map(_.trim.toLowerCase(Locale.ROOT)) match {
      case None => Always
      case Some(known @ (Always | "same_type" | "never")) => known
      case Some(other) =>
        throw SessionSettings.invalid(
          SessionSettings.Prefix + Setting,
          other,
          "it is always, same_type or never"
        )
    }
}
