package io.deltaic.spark.connect

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkEnv
import org.apache.spark.connect.proto
import org.sparkproject.connect.protobuf.{
  Any => AnyMessage,
  ByteString,
  CodedInputStream,
  InvalidProtocolBufferException,
  UnknownFieldSet
}

import io.deltaic.protocol.{DeltaicException, SharedResource}
import io.deltaic.spark.util.Json

/**
 * A protobuf message of a client, read by the declaration in `connect-messages.json`: for each field its number and its
 * type. A type is a scalar type of protobuf, the name of a message or an enum, `[type]` for a repeated field, or
 * `{string}` for a map of strings. The file declares the messages that delta-spark publishes, and our own; those of
 * Spark are parsed by its classes.
 *
 * A field that is not declared is an error: it may ask for something that this version does not do.
 */
private[connect] final class WireMessage private (
    val name: String,
    declared: Map[String, WireMessage.Field],
    fields: UnknownFieldSet
) {
  import WireMessage._

  def has(field: String): Boolean = fields.hasField(number(field))

  /** The one field that is set, except those that are named: that of a `oneof`. */
  def alternative(except: String*): String =
    declared.keys.filterNot(except.contains).filter(has).toSeq match {
      case Seq(one) => one
      case found =>
        val listed = if (found.isEmpty) "none" else found.sorted.mkString(", ")
        throw invalid(s"it has one of its alternatives, and here $listed")
    }

  def string(field: String): String = last(field).fold("")(_.toStringUtf8)

  def optionalString(field: String): Option[String] = last(field).map(_.toStringUtf8)

  def strings(field: String): Seq[String] = all(field).map(_.toStringUtf8)

  def stringMap(field: String): Map[String, String] = all(field).map { bytes =>
    val entry = parsed(name)(UnknownFieldSet.parseFrom(bytes))
    def text(number: Int) =
      entry.getField(number).getLengthDelimitedList.asScala.lastOption.fold("")(_.toStringUtf8)
    text(1) -> text(2)
  }.toMap

  /** A number of any size, or of an enum; 0 by default, as in the protocol. */
  def long(field: String): Long = optionalLong(field).getOrElse(0L)

  def optionalLong(field: String): Option[Long] =
    fields.getField(number(field)).getVarintList.asScala.lastOption.map(_.longValue)

  def boolean(field: String): Boolean = long(field) != 0

  def optionalDouble(field: String): Option[Double] =
    fields.getField(number(field)).getFixed64List.asScala.lastOption
      .map(bits => java.lang.Double.longBitsToDouble(bits))

  /** The name of the value of an enum. */
  def enumValue(field: String): String = {
    val value = long(field).toString
    declarations(declared(field).kind).collectFirst { case (found, `value`) => found }
      .getOrElse(throw invalid(s"the value $value of $field is not known"))
  }

  def message(field: String): WireMessage =
    last(field).map(WireMessage.of(declared(field).kind, _)).getOrElse {
      throw invalid(s"$field is missing")
    }

  def messages(field: String): Seq[WireMessage] =
    all(field).map(WireMessage.of(declared(field).kind, _))

  def relation(field: String): proto.Relation = required(field)(proto.Relation.parseFrom(_))

  def expression(field: String): proto.Expression =
    required(field)(proto.Expression.parseFrom(_))

  def optionalExpression(field: String): Option[proto.Expression] =
    Option.when(has(field))(expression(field))

  def dataType(field: String): proto.DataType = required(field)(proto.DataType.parseFrom(_))

  def invalid(reason: String): Throwable = WireMessage.invalid(name, reason)

  private def required[A](field: String)(parse: CodedInputStream => A): A = {
    val bytes = last(field).getOrElse(throw invalid(s"$field is missing"))
    parsed(declared(field).kind)(parse(stream(bytes)))
  }

  private def last(field: String): Option[ByteString] = all(field).lastOption

  private def all(field: String): Seq[ByteString] =
    fields.getField(number(field)).getLengthDelimitedList.asScala.toSeq

  private def number(field: String): Int = declared(field).number
}

private[connect] object WireMessage {

  /** @param kind the type of the field, or of its elements */
  private final case class Field(number: Int, kind: String)

  private val RecursionLimit = "spark.connect.grpc.marshallerRecursionLimit"
  private val DefaultRecursionLimit = 1024

  /** Fields with their numbers and types, or values of an enum with their numbers, by the name of the message. */
  private lazy val declarations: Map[String, Map[String, String]] =
    SharedResource.json("connect-messages.json").properties().asScala.map { entry =>
      entry.getKey -> Json.strings(entry.getValue)
    }.toMap

  /** The message that a client has packed; none if it is another one. */
  def unpack(packed: Array[Byte], name: String): Option[WireMessage] = {
    val message = parsed("google.protobuf.Any")(AnyMessage.parseFrom(packed))
    Option.when(message.getTypeUrl.endsWith(s"/$name"))(of(name, message.getValue))
  }

  private def of(name: String, bytes: ByteString): WireMessage = {
    val declared = fieldsOf(name)
    val fields = parsed(name)(UnknownFieldSet.parseFrom(bytes))
    val numbers = declared.values.map(_.number).toSet
    fields.asMap.keySet.asScala.map(_.intValue).find(!numbers(_)).foreach { number =>
      throw invalid(name, s"this version of Deltaic does not know its field $number")
    }
    new WireMessage(name, declared, fields)
  }

  private def fieldsOf(name: String): Map[String, Field] =
    declarations(name).map { case (field, declaration) =>
      val (number, kind) = declaration.splitAt(declaration.indexOf(' '))
      field -> Field(number.toInt, kind.trim.stripPrefix("[").stripSuffix("]"))
    }

  /** A plan may be nested as deeply as Spark allows for its own messages. */
  private def stream(bytes: ByteString): CodedInputStream = {
    val input = bytes.newCodedInput()
    input.setSizeLimit(Int.MaxValue)
    input.setRecursionLimit(SparkEnv.get.conf.getInt(RecursionLimit, DefaultRecursionLimit))
    input
  }

  private def parsed[A](name: String)(parse: => A): A =
    try parse
    catch {
      case e: InvalidProtocolBufferException => throw invalid(name, e.getMessage)
    }

  private def invalid(name: String, reason: String): Throwable =
    DeltaicException(
      "DELTAIC_CONNECT_MESSAGE_INVALID",
      Map("message" -> name, "reason" -> reason)
    )
}
