package io.delta.tables

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.types.{DataType, MetadataBuilder, StructField}

import io.deltaic.spark.SessionTable
import io.deltaic.spark.schema.ColumnKeys

/**
 * A column of a table. [[DeltaTable.columnBuilder]] returns one, and [[DeltaTableBuilder.addColumn]] takes what `build`
 * returns.
 *
 * {{{
 *   DeltaTable.columnBuilder(spark, "year").dataType("INT").generatedAlwaysAs("year(day)").build()
 * }}}
 */
class DeltaColumnBuilder private[tables] (spark: SparkSession, colName: String) {
  private var dataType = Option.empty[DataType]
  private var isNullable = true
  private var comment = Option.empty[String]
  private var generation = Option.empty[MetadataBuilder => MetadataBuilder]

  /** Its type in SQL. */
  def dataType(dataType: String): DeltaColumnBuilder = {
    val session = SessionTable.classicSession(spark, "DeltaColumnBuilder.dataType")
    this.dataType(session.sessionState.sqlParser.parseDataType(dataType))
  }

  /** Its type. */
  def dataType(dataType: DataType): DeltaColumnBuilder = {
    this.dataType = Some(dataType)
    this
  }

  /** Whether its values may be null. */
  def nullable(nullable: Boolean): DeltaColumnBuilder = {
    isNullable = nullable
    this
  }

  /** Its values are computed from other columns by a SQL expression. */
  def generatedAlwaysAs(expr: String): DeltaColumnBuilder =
    generated(_.putString(ColumnKeys.GenerationExpression, expr))

  /** Its values are unique, and generated for each row. */
  def generatedAlwaysAsIdentity(): DeltaColumnBuilder = generatedAlwaysAsIdentity(1L, 1L)

  /** Its values are unique, and generated for each row. */
  def generatedAlwaysAsIdentity(start: Long, step: Long): DeltaColumnBuilder =
    identity(start, step, allowsExplicitInsert = false)

  /** Its values are generated for each row that does not have one. */
  def generatedByDefaultAsIdentity(): DeltaColumnBuilder = generatedByDefaultAsIdentity(1L, 1L)

  /** Its values are generated for each row that does not have one. */
  def generatedByDefaultAsIdentity(start: Long, step: Long): DeltaColumnBuilder =
    identity(start, step, allowsExplicitInsert = true)

  private def identity(
      start: Long,
      step: Long,
      allowsExplicitInsert: Boolean
  ): DeltaColumnBuilder = {
    if (step == 0)
      throw invalid("column identity generation requires step to be non-zero")
    generated { metadata =>
      metadata.putLong(ColumnKeys.IdentityStart, start)
        .putLong(ColumnKeys.IdentityStep, step)
        .putBoolean(ColumnKeys.IdentityAllowExplicitInsert, allowsExplicitInsert)
    }
  }

  private def generated(put: MetadataBuilder => MetadataBuilder): DeltaColumnBuilder = {
    if (generation.isDefined)
      throw invalid("it has a generation expression or an identity already, and can have only one")
    generation = Some(put)
    this
  }

  /** A description of the column. */
  def comment(comment: String): DeltaColumnBuilder = {
    this.comment = Option(comment)
    this
  }

  private def invalid(reason: String): Throwable = BuilderError(s"Column $colName", reason)

  /** The column, with its generation in the metadata. */
  def build(): StructField = {
    val columnType = dataType.getOrElse {
      throw invalid(s"the data type of the column $colName was not provided; call dataType")
    }
    val metadata = generation.fold(new MetadataBuilder())(_(new MetadataBuilder())).build()
    val field = StructField(colName, columnType, isNullable, metadata)
    comment.fold(field)(field.withComment)
  }
}
