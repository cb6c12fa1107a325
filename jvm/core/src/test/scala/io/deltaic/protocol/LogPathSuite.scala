package io.deltaic.protocol

import munit.ScalaCheckSuite
import org.apache.hadoop.fs.Path
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

class LogPathSuite extends ScalaCheckSuite {

  private val table = new Path("file:/data/my table")

  private val segment =
    Gen.nonEmptyListOf(Gen.oneOf("az09-_=%#?:@+ &~é世'()[]".toSeq)).map(c => "x" + c.mkString)

  property("the relative path of a file below the table resolves to the file") {
    forAll(Gen.nonEmptyListOf(segment).map(_.mkString("/"))) { relative =>
      val file = new Path(null, null, s"${table.toUri.getPath}/$relative")
      val qualified = new Path("file", null, file.toUri.getPath)
      val spelled = LogPath.relativize(table, qualified)
      assertEquals(LogPath.toAbsolute(table, spelled), qualified)
      assertEquals(LogPath.canonical(table, spelled), relative)
      // Other engines parse the path with java.net.URI.
      assertEquals(new java.net.URI(spelled).getPath, relative)
    }
  }

  test("one file has one key, relative or absolute, escaped or not") {
    val spellings = Seq(
      "a b/c%d.parquet" -> "a%20b/c%25d.parquet",
      "a b/c%d.parquet" -> "file:/data/my%20table/a%20b/c%25d.parquet",
      "a b/c%d.parquet" -> "file:///data/my%20table/a%20b/c%25d.parquet",
      "a b/c%d.parquet" -> "/data/my%20table/a%20b/c%25d.parquet",
      "a b/c%d.parquet" -> "a b//c%25d.parquet",
      "a b/c%d.parquet" -> "./a%20b/c%25d.parquet",
      "file:/other/x" -> "/other/x",
      "file:/other/x" -> "file:///other/x",
      "s3a://bucket/x y" -> "s3a://bucket/x%20y",
      "p=a:b/f" -> "p=a%3Ab/f",
      "p=a%3Ab/f" -> "p=a%253Ab/f",
      "a#b?c" -> "a#b?c",
      "50%" -> "50%"
    )
    spellings.foreach { case (key, spelling) =>
      assertEquals(LogPath.canonical(table, spelling), key, spelling)
    }
  }

  test("missing parts of a URI are those of the table") {
    val root = new Path("hdfs://nn:8020/t")
    Seq("hdfs:///t/a", "hdfs:/t/a", "HDFS:///t/a", "/t/a", "hdfs://nn:8020/t/a").foreach { path =>
      assertEquals(LogPath.canonical(root, path), "a", path)
    }
    assertEquals(
      LogPath.toAbsolute(root, "hdfs:///u/a%20b"),
      new Path("hdfs", "nn:8020", "/u/a b")
    )
    assertEquals(LogPath.canonical(root, "viewfs:///t/a"), "viewfs:/t/a")
    assertEquals(LogPath.canonical(root, "hdfs://other/t/a"), "hdfs://other/t/a")
  }

  test("a path outside the table is spelled with its scheme") {
    assertEquals(
      LogPath.relativize(new Path("hdfs://nn:8020/t"), new Path("s3a://bucket/a b")),
      "s3a://bucket/a%20b"
    )
    assertEquals(LogPath.relativize(table, new Path("file:/data/other")), "file:/data/other")
  }
}
