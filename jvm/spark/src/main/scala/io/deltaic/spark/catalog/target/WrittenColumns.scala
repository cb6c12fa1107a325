package io.deltaic.spark.catalog.target

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.util.SessionSettings
import io.deltaic.spark.write.{SchemaEvolution, WriteFlags}

/**
 * The columns of the rows to write.
 *
 * @param byName whether they are matched to the table's columns by name, or by position
 * @param specified columns of the table whose values the statement itself specifies
 */
private[spark] final case class RowsToWrite(
    columns: StructType,
    byName: Boolean,
    specified: Set[String] = Set.empty
)

/** Whether the columns of a table evolve to those of the written rows. */
private[spark] sealed trait Evolution

private[spark] object Evolution {

  /** No evolution: rows with other columns are refused. */
  case object Off extends Evolution

  /** Columns evolve where they can; else rows are cast. */
  case object IfPossible extends Evolution

  /** Columns evolve; rows of a type to which a column cannot evolve are refused if the cast could truncate values. */
  case object Required extends Evolution

  /** Columns evolve where they can; else rows are cast, and refused if the cast could truncate a value silently. */
  case object IfLossy extends Evolution

  /**
   * The same for a write to a table of the catalog, where rows are always cast to its types.
   *
   * @param option the write's option of that name
   */
  def ofCatalogTable(spark: SparkSession, option: String => Option[String]): Evolution =
    of(spark, option) match {
      case Required => IfLossy
      case other => other
    }

  /**
   * The option of a write mayChangeTo precedence over the session.
   *
   * @param option the write's option of that name
   */
  def of(spark: SparkSession, option: String => Option[String]): Evolution =
    WriteFlags.of(WriteFlags.MergeSchema, option) match {
      case Some(true) => Required
      case Some(false) => Off
      case None =>
        if (SessionSettings.isOn(spark, "schema.autoMerge.enabled")) IfPossible else Off
    }
}

private[spark] object WrittenColumns {

  /**
   * The columns after a write that may evolve them; none for one that may not.
   *
   * @throws DeltaicThrowable if the rows have columns that it may not add
   */
  def evolved(table: DeltaicTable, rows: RowsToWrite, evolution: Evolution): Option[StructType] = {
    val before = table.tableSchema.all
    def after(mayChangeTo: (DataType, DataType) => Boolean = (_, _) => false): StructType =
      withIdentity(table, follow(before, rows, mayChangeTo))
    // Python refuses what the table does not allow; what the session does not allow is refused here.
    def followedOrRefused(mayAlsoChangeTo: (DataType, DataType) => Boolean): StructType = {
      val widens = AutomaticWidening.of(table)
      val columns = after((own, other) => widens(own, other) || mayAlsoChangeTo(own, other))
      refuseWithheld(table, before, columns)
      columns
    }
    evolution match {
      case Evolution.Required =>
        Some(followedOrRefused(SchemaEvolution.isWiderOrLossy))
      case Evolution.IfLossy =>
        Some(followedOrRefused(SchemaEvolution.truncates))
      case Evolution.IfPossible => Some(after(AutomaticWidening.of(table)))
      case Evolution.Off =>
        val added = SchemaEvolution.addedTo(before, after())
        if (added.nonEmpty) throw mismatch(table, added)
        None
    }
  }

  /**
   * An identity column stays BIGINT (Protocol § Identity Columns), and rows are cast to it; delta-spark
   * widens it, which the protocol does not allow. Python refuses rows that a cast could truncate.
   */
  private def withIdentity(table: DeltaicTable, after: StructType): StructType = {
    val widens = AutomaticWidening.of(table)
    def isKept(column: StructField, rows: DataType): Boolean =
      table.tableSchema.identity(column.name) && widens(column.dataType, rows) &&
      !SchemaEvolution.truncates(column.dataType, rows)
    StructType(after.map { field =>
      val own = table.tableSchema.all.find(_.name == field.name)
      own.filter(c => isKept(c, field.dataType))
        .getOrElse(field)
    })
  }

  private def refuseWithheld(
      table: DeltaicTable,
      before: StructType,
      after: StructType
  ): Unit = {
    val withheld = AutomaticWidening.withheld(table)
    for {
      (column, own, other) <- SchemaEvolution.retyped(before, after)
      reason <- withheld(own, other)
    } throw DeltaicException(
      "DELTAIC_SCHEMA_EVOLUTION_REFUSED",
      Map(
        "table" -> table.log.table.toString,
        "version" -> table.snapshot.version.toString,
        "column" -> column,
        "current" -> own.catalogString,
        "written" -> other.catalogString,
        "reason" -> reason
      )
    )
  }

  private def follow(
      table: StructType,
      rows: RowsToWrite,
      mayChangeTo: (DataType, DataType) => Boolean
  ): StructType = {
    val (specified, open) = table.partition(field => rows.specified(field.name))
    val followed = new SchemaEvolution(rows.byName, mayChangeTo)
      .evolved(StructType(open), rows.columns)
    val byName = (specified ++ followed).map(field => field.name -> field).toMap
    val existing = table.fieldNames.toSet
    StructType(
      table.fieldNames.toSeq.map(byName) ++ followed.filterNot(field => existing(field.name))
    )
  }

  private def mismatch(table: DeltaicTable, added: Seq[String]): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_SCHEMA_MISMATCH",
      Map(
        "table" -> table.log.table.toString,
        "version" -> table.snapshot.version.toString,
        "columns" -> added.mkString(", "),
        "tableColumns" -> table.tableSchema.all.fieldNames.mkString(", ")
      )
    )
}
