package io.deltaic.log

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.add
import io.deltaic.protocol._

class LastCheckpointSuite extends munit.FunSuite {

  private def json(text: String): Array[Byte] = text.getBytes(UTF_8)

  // Protocol: json-checksum-1
  test("the protocol's test vector has the specified canonical form and checksum") {
    val sample = json(
      """{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], """ +
        """{"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"""
    )
    assertEquals(
      LastCheckpoint.canonical(sample),
      """"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,""" +
        """"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6",""" +
        """"k1"+"k3"+2+"k5"+2="v7""""
    )
    assertEquals(LastCheckpoint.checksum(sample), "6a92d155a59bf2eecbd4b4ec7fd1f875")
  }

  // Protocol: how-to-url-encode-keys-and-string-values-1
  test("the protocol's smaller examples have the specified canonical forms") {
    assertEquals(
      LastCheckpoint.canonical(json("""{"a": 10, "b": {"y": null, "x": "https://delta.io"} }""")),
      """"a"=10,"b"+"x"="https%3A%2F%2Fdelta.io","b"+"y"=null"""
    )
    assertEquals(
      LastCheckpoint.canonical(json("""{"k1": "v1", "checksum": "<anything>", "k3": 23}""")),
      """"k1"="v1","k3"=23"""
    )
    assertEquals(LastCheckpoint.canonical(json("""{"é~":true}""")), """"%C3%A9~"=true""")
    assertEquals(
      LastCheckpoint.canonical(json("""{"a": [null, "hi ho", 2.71]}""")),
      """"a"+0=null,"a"+1="hi%20ho","a"+2=2.71"""
    )
  }

  Seq("1.10", "1e5", "1E+2", "-0", "0.10000000000000000555", "123456789012345678901234567890")
    .foreach { number =>
      test(s"the number $number is its own canonical form") {
        assertEquals(
          LastCheckpoint.canonical(json(s"""{"version":3,"more":{"x":[$number]}}""")),
          s""""more"+"x"+0=$number,"version"=3"""
        )
      }
    }

  test("the checksum of a hint uses the spelling of its numbers") {
    val canonical = """"version"=3,"x"=1.10"""
    val md5 = MessageDigest.getInstance("MD5").digest(canonical.getBytes(UTF_8))
    val checksum = md5.map(b => f"$b%02x").mkString
    assertEquals(hintOf(s"""{"version":3,"x":1.10,"checksum":"$checksum"}"""), Some(3L))
    assertEquals(hintOf(s"""{"version":3,"x":1.1,"checksum":"$checksum"}"""), None)
  }

  private def hintOf(text: String): Option[Long] = {
    val table = TableBuilder().file("_last_checkpoint", text)
    LastCheckpoint.version(new Path(table.log.toUri), LogStore.forPath(table.path, table.conf))
  }

  test("a file by delta-spark with an embedded V2 checkpoint has a valid checksum") {
    val golden =
      TableBuilder.shared.resolve(
        "tables/tables/golden__v2-checkpoint-json/_delta_log/_last_checkpoint"
      )
    val text = java.nio.file.Files.readString(golden)
    assertEquals(hintOf(text), Some(2L))
    assertEquals(hintOf(text.replace("\"numOfAddFiles\":4", "\"numOfAddFiles\":5")), None)
  }

  test("a hint with a wrong checksum or a duplicate field is ignored") {
    val right = LastCheckpoint.checksum(json("""{"version":3,"size":1}"""))
    assertEquals(hintOf(s"""{"version":3,"size":1,"checksum":"$right"}"""), Some(3L))
    assertEquals(hintOf(s"""{"version":3,"size":2,"checksum":"$right"}"""), None)
    assertEquals(hintOf("""{"version":3,"size":1}"""), Some(3L))
    assertEquals(hintOf("""{"version":3,"version":4}"""), None)
  }

  test("a V2 checkpoint that is embedded in the hint is not used") {
    val body = s"""{"version":0,"size":3,"v2Checkpoint":{"path":"x.json","sizeInBytes":1,
      "modificationTime":1,"nonFileActions":[${ActionJson.write(Metadata(
        "lie",
        schemaString = "{}"
      ))}],
      "sidecarFiles":[{"path":"nowhere.parquet","sizeInBytes":1,"modificationTime":1}]}}"""
    val hint = ActionJson.mapper.readTree(body).asInstanceOf[ObjectNode]
    hint.put("checksum", LastCheckpoint.checksum(json(body)))
    val table = TableBuilder.created(add("a")).file("_last_checkpoint", hint.toString)
    val snapshot = table.open().latest()
    assertEquals(snapshot.metadata, TableBuilder.metadata)
    assertEquals(snapshot.files.path(0), "a")
  }

  // Protocol: file-types-checkpoints-3
  test("a hint ahead of the log, or at a version without a checkpoint, is harmless") {
    Seq(1, 99).foreach { version =>
      val table = TableBuilder.created(add("a")).commit(1, add("b"))
      table.file("_last_checkpoint", s"""{"version":$version,"size":1}""")
      val snapshot = table.open().latest()
      assertEquals((snapshot.version, snapshot.files.size), (1L, 2))
    }
  }
}
