package io.deltaic.spark.write

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.write.LogicalWriteInfo
import org.apache.spark.sql.deltaic.ExpressionInternals
import org.apache.spark.sql.types.{ArrayType, DataType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.util.SessionSettings

/** The options of a DataFrame writer that specify which rows it replaces. */
private[spark] object ReplaceWhere {
  val Key = "replaceWhere"

  /** Options for rows that match a new row: a condition over both, or columns in which they are equal. */
  val OnKey = "replaceOn"
  val UsingKey = "replaceUsing"

  /** The name of the table in a condition over both. */
  val AliasKey = "targetAlias"

  /** All options that specify the replaced rows. */
  val Keys: Seq[String] = Seq(Key, OnKey, UsingKey)

  /** The setting that restricts conditions to partition columns if it is false. */
  private val DataColumns = "replaceWhere.dataColumns.enabled"

  /** Whether new rows must satisfy the condition. */
  private val Checked = "replaceWhere.constraintCheck.enabled"

  /** Refuses a write that would replace other rows than its options specify. */
  def requireHonored(
      table: String,
      options: CaseInsensitiveStringMap,
      replaced: Replaced
  ): Unit = {
    val honored = replaced match {
      case Replaced.Rows(_) => Seq(Key)
      case Replaced.Matching(_, _, _) => Seq(OnKey, UsingKey)
      case _ => Nil
    }
    Keys.filter(options.containsKey).filterNot(honored.contains)
      .foreach { key =>
        val reason = s"this write API does not support the option $key, which requires mode " +
          "overwrite of a DataFrame writer, and excludes the other options of its kind"
        throw refused(table, options.get(key), reason)
      }
  }

  /**
   * A write with such options to a table that it creates. It replaces no rows; the condition restricts the
   * rows that it may write.
   *
   * @param columns of the new table
   */
  def toNewTable(
      target: WriteTarget,
      columns: StructType,
      info: LogicalWriteInfo
  ): TableWriteBuilder = {
    val condition = Option(info.options.get(Key))
      .map(inNewTable(target, _, columns))
      .filter(_ => isChecked(target.spark))
    val others = info.options.asCaseSensitiveMap.asScala.filterNot { case (name, _) =>
      Keys.exists(_.equalsIgnoreCase(name))
    }
    new TableWriteBuilder(
      target.copy(intent = target.intent.copy(rowCondition = condition)),
      new LogicalWriteInfo {
        override val options = new CaseInsensitiveStringMap(others.asJava)
        override def queryId: String = info.queryId
        override def schema: StructType = info.schema
      }
    )
  }

  private def inNewTable(
      target: WriteTarget,
      condition: String,
      columns: StructType
  ): Expression = {
    val resolved =
      try ExpressionInternals.resolved(
          target.spark,
          condition,
          ExpressionInternals.attributes(columns)
        )
      catch {
        case e @ (_: AnalysisException | _: IllegalArgumentException) =>
          throw refused(target.table, condition, e.getMessage)
      }
    requireAllowed(target, resolved)
    resolved
  }

  /**
   * Refuses a nondeterministic condition, one that the session does not allow, and one of Python on new rows, which
   * writers check in the JVM.
   */
  def requireAllowed(target: WriteTarget, condition: Expression): Unit = {
    if (!condition.deterministic)
      throw refused(target.table, condition.sql, "it is not deterministic")
    condition.collectFirst { case function: PythonUDF => function.name }
      .filter(_ => isChecked(target.spark))
      .foreach { name =>
        val reason = s"new rows are compared with it, where the Python function $name cannot run " +
          s"(${SessionSettings.Prefix}$Checked=false does not compare them)"
        throw refused(target.table, condition.sql, reason)
      }
    val others = condition.references.toSeq.map(_.name).filterNot(target.partitionColumns.contains)
    if (others.nonEmpty && !SessionSettings.isOn(target.spark, DataColumns, default = true)) {
      val reason = s"the table is not partitioned by ${others.distinct.mkString(", ")}, and " +
        s"${SessionSettings.Prefix}$DataColumns is false (or its older name " +
        s"spark.databricks.delta.$DataColumns); a condition can reference partition columns only"
      throw refused(target.table, condition.sql, reason)
    }
  }

  /**
   * Refuses a condition on a column or field that the write itself adds to the table: existing rows do not
   * have it.
   *
   * @param columns of the table before the write, on which the condition is evaluated
   */
  def requirePresent(table: String, condition: Expression, columns: StructType): Unit = {
    def missing(name: String) = refused(
      table,
      condition.sql,
      s"the table has no $name; this write adds it, so no row of the table has a value for it"
    )
    val types = columns.fields.map(column => column.name -> column.dataType).toMap
    condition.transformUp {
      case column: AttributeReference =>
        val ofTable = types.getOrElse(column.name, throw missing(s"column ${column.name}"))
        column.copy(dataType = ofTable)(column.exprId, column.qualifier)
      case GetStructField(child, ordinal, name) if lacks(child.dataType, ordinal) =>
        throw missing(s"field ${name.getOrElse(ordinal.toString)}")
      case GetArrayStructFields(child, field, ordinal, _, _)
          if lacks(child.dataType.asInstanceOf[ArrayType].elementType, ordinal) =>
        throw missing(s"field ${field.name}")
    }
    ()
  }

  private def lacks(struct: DataType, ordinal: Int): Boolean =
    struct.asInstanceOf[StructType].length <= ordinal

  /** @throws DeltaicThrowable if it cannot be parsed */
  def parse(spark: SparkSession, table: String, condition: String): Expression =
    try spark.sessionState.sqlParser.parseExpression(condition)
    catch {
      case e: ParseException => throw refused(table, condition, e.getMessage)
    }

  /** Whether new rows must satisfy the condition of the replaced rows. */
  def isChecked(spark: SparkSession): Boolean =
    SessionSettings.isOn(spark, Checked, default = true)

  def refused(table: String, condition: String, reason: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_REPLACE_WHERE_REFUSED",
      Map("table" -> table, "predicate" -> condition, "reason" -> reason)
    )
}
