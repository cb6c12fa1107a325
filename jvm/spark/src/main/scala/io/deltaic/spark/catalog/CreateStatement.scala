package io.deltaic.spark.catalog

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.types._

import io.deltaic.spark.schema.{CharVarchar, ColumnKeys}

/**
 * A statement that creates or replaces a table, as SQL that Spark's parser accepts.
 *
 * @param verb such as `CREATE TABLE`
 * @param name of the table, quoted where necessary
 * @param columns as in the log: generation expressions, identity values and defaults are in their metadata
 * @param constraints the conditions of CHECK constraints, by name
 */
private[spark] final case class CreateStatement(
    verb: String,
    name: String,
    columns: Seq[StructField],
    partitionedBy: Seq[String] = Nil,
    clusteredBy: Seq[Seq[String]] = Nil,
    comment: Option[String] = None,
    location: Option[String] = None,
    properties: Map[String, String] = Map.empty,
    constraints: Map[String, String] = Map.empty
) {
  import CreateStatement._

  def sql: String = {
    val checks = constraints.toSeq.sorted.map { case (name, condition) =>
      s"CONSTRAINT ${quoteIfNeeded(name)} CHECK ($condition)"
    }
    val elements = columns.map(columnSql) ++ checks
    val set = properties.toSeq.sorted.map { case (key, value) =>
      s"${quoted(key)} = ${quoted(value)}"
    }
    Seq(
      s"$verb $name" + (if (elements.isEmpty) "" else " " + lines(elements)),
      "USING delta",
      list("PARTITIONED BY", partitionedBy.map(quoteIfNeeded)),
      list("CLUSTER BY", clusteredBy.map(_.map(quoteIfNeeded).mkString("."))),
      comment.fold("")(c => s"COMMENT ${quoted(c)}"),
      location.fold("")(l => s"LOCATION ${quoted(l)}"),
      if (set.isEmpty) "" else s"TBLPROPERTIES ${lines(set)}"
    ).filter(_.nonEmpty).mkString("", "\n", "\n")
  }
}

private[spark] object CreateStatement {

  /** The statements, as the history names them. */
  val Create = "CREATE TABLE"
  val Replace = "REPLACE TABLE"
  val CreateOrReplace = "CREATE OR REPLACE TABLE"

  private def columnSql(column: StructField): String =
    s"${quoteIfNeeded(column.name)} ${typeSql(CharVarchar.typeOf(column))}" +
      origin(column.metadata) + nullability(column) + commentSql(column)

  private def origin(metadata: Metadata): String = {
    import ColumnKeys._
    if (metadata.contains(GenerationExpression))
      s" GENERATED ALWAYS AS (${metadata.getString(GenerationExpression)})"
    else if (metadata.contains(IdentityStart)) {
      val takesValues = metadata.contains(IdentityAllowExplicitInsert) &&
        metadata.getBoolean(IdentityAllowExplicitInsert)
      val kind = if (takesValues) "BY DEFAULT" else "ALWAYS"
      val (start, step) = (metadata.getLong(IdentityStart), metadata.getLong(IdentityStep))
      s" GENERATED $kind AS IDENTITY (START WITH $start INCREMENT BY $step)"
    } else if (metadata.contains(CurrentDefault)) s" DEFAULT ${metadata.getString(CurrentDefault)}"
    else ""
  }

  private def nullability(field: StructField): String = if (field.nullable) "" else " NOT NULL"

  private def commentSql(field: StructField): String =
    field.getComment().fold("")(comment => s" COMMENT ${quoted(comment)}")

  private def typeSql(dataType: DataType): String = dataType match {
    case StructType(fields) =>
      fields.map { field =>
        s"${quoteIfNeeded(field.name)}: ${typeSql(CharVarchar.typeOf(field))}" +
          nullability(field) + commentSql(field)
      }.mkString("STRUCT<", ", ", ">")
    case ArrayType(element, _) => s"ARRAY<${typeSql(element)}>"
    case MapType(key, value, _) => s"MAP<${typeSql(key)}, ${typeSql(value)}>"
    // `TIMESTAMP` is one of two types, depending on the session's `spark.sql.timestampType`.
    case TimestampType => "TIMESTAMP_LTZ"
    case other => other.sql
  }

  private def quoted(value: String): String = Literal(value).sql

  private def lines(elements: Seq[String]): String = elements.mkString("(\n  ", ",\n  ", ")")

  private def list(clause: String, columns: Seq[String]): String =
    if (columns.isEmpty) "" else columns.mkString(s"$clause (", ", ", ")")
}
