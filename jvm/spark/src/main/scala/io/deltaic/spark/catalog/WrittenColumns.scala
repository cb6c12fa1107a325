package io.deltaic.spark.catalog

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.SessionSettings
import io.deltaic.spark.write.{SchemaEvolution, WriteFlags}

/**
 * The columns that rows come with.
 *
 * @param byName whether they go to the table's columns of the same name, or to those in the same place
 * @param stated columns of the table for which the statement itself states the value
 */
private[spark] final case class RowsToWrite(
    columns: StructType,
    byName: Boolean,
    stated: Set[String] = Set.empty
)

/** Whether the columns of a table follow those of the rows that are written to it. */
private[spark] sealed trait Evolution

private[spark] object Evolution {

  /** They do not, and rows with other columns are refused. */
  case object No extends Evolution

  /** They do where they can; else rows are cast. */
  case object Allowed extends Evolution

  /** They do, and rows of a type that a column cannot follow, nor hold without cutting values, are refused. */
  case object Demanded extends Evolution

  /** They do where they can; else rows are cast, and refused where the cast could cut a value silently. */
  case object OrCast extends Evolution

  /**
   * The same for a write to a table of the catalog, whose rows are cast to its types in any case.
   *
   * @param option the write's option of that name
   */
  def ofCatalogTable(spark: SparkSession, option: String => Option[String]): Evolution =
    of(spark, option) match {
      case Demanded => OrCast
      case other => other
    }

  /**
   * What a write says by its option beats the session.
   *
   * @param option the write's option of that name
   */
  def of(spark: SparkSession, option: String => Option[String]): Evolution =
    WriteFlags.of(WriteFlags.MergeSchema, option) match {
      case Some(true) => Demanded
      case Some(false) => No
      case None =>
        if (SessionSettings.isOn(spark, "schema.autoMerge.enabled")) Allowed else No
    }
}

private[spark] object WrittenColumns {

  /**
   * The columns after a write that may change them; none for one that may not.
   *
   * @throws DeltaicThrowable if the rows have columns that it may not add
   */
  def evolved(table: DeltaicTable, rows: RowsToWrite, evolution: Evolution): Option[StructType] = {
    val before = table.tableSchema.all
    def after(takes: (DataType, DataType) => Boolean = (_, _) => false): StructType =
      withIdentity(table, follow(before, rows, takes))
    // What the table cannot become, Python refuses; what the session does not allow, it cannot know.
    def followedOrRefused(exceeds: (DataType, DataType) => Boolean): StructType = {
      val widens = AutomaticWidening.of(table)
      val columns = after((own, other) => widens(own, other) || exceeds(own, other))
      refuseWithheld(table, before, columns)
      columns
    }
    evolution match {
      case Evolution.Demanded =>
        Some(followedOrRefused(SchemaEvolution.exceeds))
      case Evolution.OrCast =>
        Some(followedOrRefused(SchemaEvolution.cuts))
      case Evolution.Allowed => Some(after(AutomaticWidening.of(table)))
      case Evolution.No =>
        val added = SchemaEvolution.addedTo(before, after())
        if (added.nonEmpty) throw mismatch(table, added)
        None
    }
  }

  /**
   * An identity column stays BIGINT (Protocol § Identity Columns), and rows are cast to it; delta-spark
   * widens it, to a table that the protocol does not allow. What a cast could cut is left for Python to refuse.
   */
  private def withIdentity(table: DeltaicTable, after: StructType): StructType = {
    val widens = AutomaticWidening.of(table)
    def isKept(column: StructField, rows: DataType): Boolean =
      table.tableSchema.identity(column.name) && widens(column.dataType, rows) &&
      !SchemaEvolution.cuts(column.dataType, rows)
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
      takes: (DataType, DataType) => Boolean
  ): StructType = {
    val (stated, open) = table.partition(field => rows.stated(field.name))
    val followed = new SchemaEvolution(rows.byName, takes)
      .evolved(StructType(open), rows.columns)
    val byName = (stated ++ followed).map(field => field.name -> field).toMap
    val known = table.fieldNames.toSet
    StructType(
      table.fieldNames.toSeq.map(byName) ++ followed.filterNot(field => known(field.name))
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
