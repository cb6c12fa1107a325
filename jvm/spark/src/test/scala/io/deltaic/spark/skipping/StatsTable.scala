package io.deltaic.spark.skipping

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

import io.deltaic.spark.schema.SkippingSchema

/** Files defined by their partition values and statistics in the log. */
final case class ListedFileStats(files: IndexedSeq[FileStats]) extends FileStatsSource {
  override def size: Int = files.size
  override def partitionValue(i: Int, column: String): String =
    files(i).partitionValues.getOrElse(column, null)
  override def stats(i: Int): String = files(i).stats
  override def hasDeletionVector(i: Int): Boolean = files(i).hasDeletionVector
}

final case class FileStats(
    stats: String,
    partitionValues: Map[String, String] = Map.empty,
    hasDeletionVector: Boolean = false
)

/**
 * A table with a column of each type that has statistics, nested ones, and two partition columns.
 * The log's names differ from the table's: those of the log start with `x_`.
 */
object StatsTable {
  val schema: StructType = new StructType()
    .add("byte", ByteType)
    .add("int", IntegerType)
    .add("long", LongType)
    .add("float", FloatType)
    .add("double", DoubleType)
    .add("bool", BooleanType)
    .add("string", StringType)
    .add("date", DateType)
    .add("ts", TimestampType)
    .add("ntz", TimestampNTZType)
    .add("dec", DecimalType(10, 2))
    .add("big", DecimalType(38, 10))
    .add("binary", BinaryType)
    .add("list", ArrayType(IntegerType))
    .add(
      "nest",
      new StructType().add("n", IntegerType).add("deep", new StructType().add("s", StringType))
    )
    .add("p", StringType)
    .add("q", IntegerType)

  def physicalName(field: StructField): String = s"x_${field.name}"

  val skippingSchema: SkippingSchema = new SkippingSchema(schema, Seq("p", "q"), physicalName)

  val attributes: Seq[AttributeReference] =
    schema.fields.toSeq.map(f => AttributeReference(f.name, f.dataType)())

  def col(path: String): Expression = {
    val names = path.split('.')
    names.tail.foldLeft[Expression](attributes.find(_.name == names.head).get) { (parent, name) =>
      val struct = parent.dataType.asInstanceOf[StructType]
      GetStructField(parent, struct.fieldIndex(name), Some(name))
    }
  }

  def lit(value: Any): Literal = Literal(value)

  /** The literal that Spark's own cast returns for a string. */
  def typed(string: String, dataType: DataType): Literal =
    Literal(Cast(Literal(string), dataType, Some("UTC"), EvalMode.ANSI).eval(), dataType)

  val parser: PartitionValueParser =
    (value, dataType, _) => if (value.isEmpty) null else typed(value, dataType).value

  def columns(files: FileStats*): FileStatsColumns =
    new FileStatsColumns(ListedFileStats(files.toIndexedSeq), skippingSchema, parser)

  def select(columns: FileStatsColumns, filters: Expression*): Seq[Int] =
    FileSelection.select(columns, filters).files.toSeq

  /** Statistics of one column, JSON strings by logical name. None leaves the field out. */
  def stats(
      path: String,
      min: Option[String] = None,
      max: Option[String] = None,
      nullCount: Option[Long] = Some(0),
      numRecords: Option[Long] = Some(10)
  ): FileStats = {
    def nested(json: String): String =
      path.split('.').foldRight(json)((name, inner) => s"""{"x_$name":$inner}""")
    val fields = numRecords.map(n => s""""numRecords":$n""") ++
      min.map(v => s""""minValues":${nested(v)}""") ++
      max.map(v => s""""maxValues":${nested(v)}""") ++
      nullCount.map(n => s""""nullCount":${nested(n.toString)}""")
    FileStats(fields.mkString("{", ",", "}"))
  }

  def between(path: String, min: String, max: String): FileStats =
    stats(path, Some(min), Some(max))
}
