package io.deltaic.replay.checkpoint

import org.apache.parquet.column.Dictionary
import org.apache.parquet.io.api.{Binary, Converter, GroupConverter, PrimitiveConverter}
import org.apache.parquet.schema.{GroupType, LogicalTypeAnnotation, PrimitiveType, Type}

/**
 * Receives one column of the current Parquet record. Cells are reused from record to record: a struct resets its
 * children when it starts, so a missing child is null.
 */
private[replay] sealed trait Cell {
  def reset(): Unit
  def isDefined: Boolean
  def converter: Converter
}

private[replay] object Cell {

  def of(field: Type): Cell =
    if (field.isPrimitive) PrimitiveCell.of(field.asPrimitiveType)
    else {
      field.getLogicalTypeAnnotation match {
        case _: LogicalTypeAnnotation.MapLogicalTypeAnnotation |
            _: LogicalTypeAnnotation.MapKeyValueTypeAnnotation =>
          new MapCell(field.asGroupType)
        case _: LogicalTypeAnnotation.ListLogicalTypeAnnotation => new ListCell(field.asGroupType)
        case _ => new StructCell(field.asGroupType)
      }
    }
}

/** A struct; its fields are cells by name. */
private[replay] final class StructCell(val schema: GroupType) extends GroupConverter with Cell {
  private val children = Array.tabulate(schema.getFieldCount)(i => Cell.of(schema.getType(i)))
  private var defined = false

  val fields: Seq[(Type, Cell)] =
    (0 until schema.getFieldCount).map(i => schema.getType(i) -> children(i))

  /** None if the file has no such column. */
  def field(name: String): Option[Cell] =
    if (schema.containsField(name)) Some(children(schema.getFieldIndex(name))) else None

  def struct(name: String): Option[StructCell] = field(name).collect { case s: StructCell => s }

  /** Null if the file has no such column, or one of another type. */
  def text(name: String): StringCell = field(name).collect { case t: StringCell => t }.orNull
  def long(name: String): LongCell = field(name).collect { case n: LongCell => n }.orNull
  def map(name: String): MapCell = field(name).collect { case m: MapCell => m }.orNull
  def list(name: String): ListCell = field(name).collect { case l: ListCell => l }.orNull

  override def reset(): Unit = defined = false
  override def isDefined: Boolean = defined
  override def converter: Converter = this
  override def getConverter(index: Int): Converter = children(index).converter

  override def start(): Unit = {
    defined = true
    var i = 0
    while (i < children.length) { children(i).reset(); i += 1 }
  }

  override def end(): Unit = ()
}

/** A map from strings to strings, the only kind that actions have. */
private[replay] final class MapCell(schema: GroupType) extends GroupConverter with Cell {
  private val entrySchema = schema.getType(0).asGroupType
  private val entry = new StructCell(entrySchema)
  private val key = stringCell(0)
  private val value = stringCell(1)
  private var entries: Map[String, String] = _

  private val entryConverter = new GroupConverter {
    override def getConverter(index: Int): Converter = entry.getConverter(index)
    override def start(): Unit = entry.start()
    override def end(): Unit =
      if (key != null && key.isDefined) {
        entries =
          entries.updated(key.text, if (value != null && value.isDefined) value.text else null)
      }
  }

  def map: Map[String, String] = if (entries == null) Map.empty else entries

  override def reset(): Unit = entries = null
  override def isDefined: Boolean = entries != null
  override def converter: Converter = this
  override def getConverter(index: Int): Converter = entryConverter
  override def start(): Unit = entries = Map.empty
  override def end(): Unit = ()

  private def stringCell(i: Int): StringCell =
    if (i >= entry.fields.size) null
    else {
      entry.fields(i)._2 match {
        case text: StringCell => text
        case _ => null
      }
    }
}

/** A list of strings, in the three-level layout or the older two-level one. */
private[replay] final class ListCell(schema: GroupType) extends GroupConverter with Cell {
  private val repeated = schema.getType(0)
  private var elements: Vector[String] = _

  private val repeatedConverter: Converter =
    if (repeated.isPrimitive) {
      new StringCell(repeated.asPrimitiveType) {
        override protected def set(value: String): Unit = elements = elements :+ value
      }
    } else {
      new GroupConverter {
        private val element = new StructCell(repeated.asGroupType)
        override def getConverter(index: Int): Converter = element.getConverter(index)
        override def start(): Unit = element.start()
        override def end(): Unit = element.fields.headOption.map(_._2).foreach {
          case text: StringCell if text.isDefined => elements = elements :+ text.text
          case _ => ()
        }
      }
    }

  def strings: Option[Vector[String]] = Option(elements)

  override def reset(): Unit = elements = null
  override def isDefined: Boolean = elements != null
  override def converter: Converter = this
  override def getConverter(index: Int): Converter = repeatedConverter
  override def start(): Unit = elements = Vector.empty
  override def end(): Unit = ()
}

/** A leaf. */
private[replay] sealed abstract class PrimitiveCell(val schema: PrimitiveType)
    extends PrimitiveConverter
    with Cell {
  protected var defined = false
  override def reset(): Unit = defined = false
  override def isDefined: Boolean = defined
  override def converter: Converter = this
}

private[replay] object PrimitiveCell {
  import PrimitiveType.PrimitiveTypeName._

  def of(schema: PrimitiveType): PrimitiveCell = schema.getPrimitiveTypeName match {
    case BINARY if !schema.getLogicalTypeAnnotation.isInstanceOf[DecimalAnnotation] =>
      new StringCell(schema)
    case BINARY | FIXED_LEN_BYTE_ARRAY | INT96 => new BytesCell(schema)
    case INT32 | INT64 | BOOLEAN => new LongCell(schema)
    case FLOAT | DOUBLE => new DoubleCell(schema)
  }

  private type DecimalAnnotation = LogicalTypeAnnotation.DecimalLogicalTypeAnnotation
}

private[replay] final class LongCell(schema: PrimitiveType) extends PrimitiveCell(schema) {
  var long: Long = 0
  override def addLong(value: Long): Unit = { long = value; defined = true }
  override def addInt(value: Int): Unit = { long = value.toLong; defined = true }
  override def addBoolean(value: Boolean): Unit = { long = if (value) 1 else 0; defined = true }
}

private[replay] final class DoubleCell(schema: PrimitiveType) extends PrimitiveCell(schema) {
  var double: Double = 0
  override def addDouble(value: Double): Unit = { double = value; defined = true }

  /** The shortest decimal of the float, not the digits of the widened double. */
  override def addFloat(value: Float): Unit = { double = value.toString.toDouble; defined = true }
}

private[replay] final class BytesCell(schema: PrimitiveType) extends PrimitiveCell(schema) {
  var bytes: Array[Byte] = _
  override def addBinary(value: Binary): Unit = { bytes = value.getBytes; defined = true }
}

/** A UTF-8 string. A dictionary is decoded once, so that repeated values share one object. */
private[replay] class StringCell(schema: PrimitiveType) extends PrimitiveCell(schema) {
  private var decoded: Array[String] = _
  private var current: String = _

  def text: String = current

  protected def set(value: String): Unit = {
    current = value
    defined = true
  }

  final override def addBinary(value: Binary): Unit = set(value.toStringUsingUTF8)
  final override def hasDictionarySupport: Boolean = true

  final override def setDictionary(dictionary: Dictionary): Unit =
    decoded =
      Array.tabulate(dictionary.getMaxId + 1)(i => dictionary.decodeToBinary(i).toStringUsingUTF8)

  final override def addValueFromDictionary(id: Int): Unit = set(decoded(id))
}
