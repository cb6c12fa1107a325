package io.deltaic.dv

import java.io.{IOException, OutputStream}
import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{FSDataOutputStream, LocalFileSystem, Path}
import org.apache.hadoop.util.Progressable

import io.deltaic.dv.RowSets.{rowsOf, vector}
import io.deltaic.protocol.DeltaicThrowable

class DeletionVectorFileWriterSuite extends StoreFixture {

  directory.test("vectors of one file follow each other, and each is read by its descriptor") {
    table =>
      val rows = Seq.tabulate(200)(i => (0L to i.toLong * 7 by (1L + i % 3)) :+ (1L << 33))
      val writer = store.newWriter(tablePath(table))
      val descriptors = rows.map(each => writer.add(vector(each)))
      writer.close()
      writer.close()
      assertEquals(descriptors.map(_.pathOrInlineDv).distinct.size, 1)
      assertEquals(
        descriptors.map(_.offset.get),
        descriptors.scanLeft(1)((offset, d) => offset + 8 + d.sizeBytes).init
      )
      rows.zip(descriptors).foreach { case (each, descriptor) =>
        assertEquals(descriptor.cardinality, each.size.toLong)
        assertEquals(rowsOf(store.read(tablePath(table), dataFile, descriptor)), each)
      }
  }

  directory.test("a random prefix is a directory of that many letters and digits") { table =>
    val writer = store.newWriter(tablePath(table), randomPrefixLength = 3)
    val descriptor = writer.add(vector(Seq(4L)))
    writer.close()
    assertEquals(descriptor.pathOrInlineDv.length, 23)
    val file = local(table, descriptor)
    assertEquals(file.getParent.getParent, table)
    assert(file.getParent.getFileName.toString.matches("[a-zA-Z0-9]{3}"))
    assertEquals(rowsOf(store.read(tablePath(table), dataFile, descriptor)), Seq(4L))
  }

  directory.test("a writer without vectors leaves no file behind") { table =>
    store.newWriter(tablePath(table)).close()
    assertEquals(listed(table), Set.empty[String])
  }

  directory.test("abort deletes the files, before and after close") { table =>
    Seq(false, true).foreach { closed =>
      val writer = store.newWriter(tablePath(table))
      writer.add(vector(Seq(1L)))
      if (closed) writer.close()
      writer.abort()
      writer.abort()
      writer.close()
      assertEquals(writer.files, Nil)
      assertEquals(listed(table), Set.empty[String])
      intercept[IllegalStateException](writer.add(vector(Seq(1L))))
    }
  }

  directory.test("if the next vector does not fit, a new file is created") { table =>
    val writer = new DeletionVectorFileWriter(tablePath(table), conf, 0, maxFileBytes = 100)
    val descriptors = (0L until 5L).map(row => writer.add(vector(Seq(row))))
    val large = writer.add(vector(0L until 1000L by 2))
    writer.close()
    assertEquals(writer.files.size, 4)
    assertEquals(descriptors.map(_.offset.get), Seq(1, 43, 1, 43, 1))
    assertEquals(large.offset, Some(1))
    (descriptors :+ large).foreach(d => store.read(tablePath(table), dataFile, d))
    writer.abort()
    assertEquals(listed(table), Set.empty[String])
  }

  directory.test("a failed write names table and file, and leaves no file behind") { table =>
    Seq("write", "close").foreach { stage =>
      val failing = new Configuration(conf)
      failing.set("fs.failing.impl", classOf[FailingFileSystem].getName)
      failing.set("fs.failing.impl.disable.cache", "true")
      failing.set("failing.stage", stage)
      val path = new Path(s"failing://$table")
      val writer = new DeletionVectorStore(failing).newWriter(path, randomPrefixLength = 2)
      val error = intercept[DeltaicThrowable] {
        writer.add(vector(0L until 300000L by 2))
        writer.close()
      }
      assertEquals(error.condition, "DELTAIC_DELETION_VECTOR_WRITE_FAILED")
      requireFilledMessage(error)
      assertEquals(error.parameters("table"), path.toString)
      assert(error.parameters("location").endsWith(".bin"))
      assert(error.parameters("reason").contains("disk full"))
      assertEquals(listed(table), Set.empty[String])
      intercept[IllegalStateException](writer.add(vector(Seq(1L))))
    }
  }

  directory.test("a directory that cannot be created is a failed write") { table =>
    val inTheWay = Files.createFile(table.resolve("t"))
    val error = intercept[DeltaicThrowable] {
      store.newWriter(tablePath(inTheWay)).add(vector(Seq(1L)))
    }
    assertEquals(error.condition, "DELTAIC_DELETION_VECTOR_WRITE_FAILED")
    assertEquals(listed(table), Set("t"))
  }

  test("a negative prefix length is refused") {
    intercept[IllegalArgumentException](store.newWriter(new Path("/t"), -1))
  }
}

/** A local file system that fails with a full disk on write or on close. */
final class FailingFileSystem extends LocalFileSystem {

  override def getScheme: String = "failing"
  override def getUri: java.net.URI = java.net.URI.create("failing:///")
  override def checkPath(path: Path): Unit = ()
  override def makeQualified(path: Path): Path = path

  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferBytes: Int,
      replication: Short,
      blockBytes: Long,
      progress: Progressable
  ): FSDataOutputStream = {
    val stage = getConf.get("failing.stage")
    val file = LocalPath.of(path.toUri.getPath)
    Files.createDirectories(file.getParent)
    val disk = Files.newOutputStream(file)
    val full = new OutputStream {
      override def write(byte: Int): Unit = disk.write(byte)
      override def write(bytes: Array[Byte], start: Int, count: Int): Unit =
        if (stage == "write") throw new IOException("disk full")
        else disk.write(bytes, start, count)
      override def close(): Unit = {
        disk.close()
        if (stage == "close") throw new IOException("disk full")
      }
    }
    new FSDataOutputStream(full, null)
  }

  override def delete(path: Path, recursive: Boolean): Boolean = {
    val file = LocalPath.of(path.toUri.getPath)
    Files.deleteIfExists(file) && { Files.deleteIfExists(file.getParent); true }
  }
}
