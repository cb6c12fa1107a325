package io.deltaic.spark.connect

import java.io.ByteArrayOutputStream

import org.sparkproject.connect.protobuf.{Any => AnyMessage, ByteString, CodedOutputStream}

import io.deltaic.PatientSuite
import io.deltaic.protocol.DeltaicThrowable

/** What protobuf's own writer writes is read by the declaration. */
class WireMessageSuite extends PatientSuite {

  private def written(write: CodedOutputStream => Unit): ByteString = {
    val bytes = new ByteArrayOutputStream
    val output = CodedOutputStream.newInstance(bytes)
    write(output)
    output.flush()
    ByteString.copyFrom(bytes.toByteArray)
  }

  private def packed(name: String, value: ByteString): Array[Byte] =
    AnyMessage.newBuilder.setTypeUrl(s"type.googleapis.com/$name").setValue(value).build.toByteArray

  private def message(name: String)(write: CodedOutputStream => Unit): WireMessage =
    WireMessage.unpack(packed(name, written(write)), name).get

  private def refusal(work: => Any): String = {
    val e = intercept[Exception](work)
    assertEquals(e.asInstanceOf[DeltaicThrowable].condition, "DELTAIC_CONNECT_MESSAGE_INVALID")
    e.getMessage
  }

  test("scalars have their values, and defaults where they are absent") {
    val restore = message("delta.connect.RestoreTable")(_.writeInt64(2, Long.MinValue))
    assertEquals(restore.long("version"), Long.MinValue)
    assertEquals(restore.optionalString("timestamp"), None)
    val clone = message("delta.connect.CloneTable") { output =>
      output.writeString(2, "ä")
      output.writeInt32(3, -1)
      output.writeBool(5, true)
    }
    assertEquals(clone.string("target"), "ä")
    assertEquals(clone.optionalLong("version"), Some(-1L))
    assert(clone.boolean("is_shallow"))
    assert(!clone.boolean("replace"))
    assertEquals(clone.string("timestamp"), "")
    val vacuum = message("delta.connect.VacuumTable")(_.writeDouble(2, 0.0))
    assertEquals(vacuum.optionalDouble("retention_hours"), Some(0.0))
    assertEquals(
      message("delta.connect.VacuumTable")(_ => ()).optionalDouble("retention_hours"),
      None
    )
  }

  test("of a field that is set twice, the last value counts") {
    val both = message("delta.connect.Generate") { output =>
      output.writeString(2, "first")
      output.writeString(2, "last")
    }
    assertEquals(both.string("mode"), "last")
  }

  test("lists, maps, enums and messages are read") {
    val entry = written { output =>
      output.writeString(1, "delta.appendOnly")
      output.writeString(2, "true")
    }
    val empty = written(_.writeString(1, "empty"))
    val column = written(_.writeString(1, "id"))
    val create = message("delta.connect.CreateDeltaTable") { output =>
      output.writeEnum(1, 4)
      output.writeBytes(5, column)
      output.writeString(6, "a")
      output.writeString(6, "b")
      output.writeBytes(7, entry)
      output.writeBytes(7, empty)
    }
    assertEquals(create.enumValue("mode"), "MODE_CREATE_OR_REPLACE")
    assertEquals(create.strings("partitioning_columns"), Seq("a", "b"))
    assertEquals(create.stringMap("properties"), Map("delta.appendOnly" -> "true", "empty" -> ""))
    assertEquals(create.messages("columns").map(_.string("name")), Seq("id"))
    assertEquals(create.strings("clustering_columns"), Nil)
  }

  test("another message is not unpacked") {
    val bytes = packed("delta.connect.Scan", ByteString.EMPTY)
    assertEquals(WireMessage.unpack(bytes, "delta.connect.DeltaRelation"), None)
  }

  test("a field that is not declared is refused") {
    val reason = refusal(message("delta.connect.Scan")(_.writeString(9, "new")))
    assert(reason.contains("delta.connect.Scan") && reason.contains("field 9"), reason)
  }

  test("a value of an enum that is not declared is refused") {
    val create = message("delta.connect.CreateDeltaTable")(_.writeEnum(1, 9))
    assert(refusal(create.enumValue("mode")).contains("value 9 of mode"))
  }

  test("one of several alternatives is set") {
    val table = message("delta.connect.DeltaTable")(_.writeString(2, "t"))
    assertEquals(table.alternative(), "table_or_view_name")
    assert(refusal(message("delta.connect.DeltaTable")(_ => ()).alternative()).contains("none"))
    val both = message("delta.connect.DeltaTable") { output =>
      output.writeBytes(1, ByteString.EMPTY)
      output.writeString(2, "t")
    }
    assert(refusal(both.alternative()).contains("path, table_or_view_name"))
    assertEquals(both.alternative(except = "path"), "table_or_view_name")
  }

  test("bytes that are not a message are refused") {
    val bytes = packed("delta.connect.Scan", ByteString.copyFrom(Array[Byte](10, 5, 1)))
    assert(refusal(WireMessage.unpack(bytes, "delta.connect.Scan")).contains("delta.connect.Scan"))
    assert(refusal(WireMessage.unpack(Array[Byte](10, 5), "x")).contains("google.protobuf.Any"))
  }
}
