package io.deltaic.spark.restore

import java.nio.file.{Files, Path => LocalPath}

import munit.FunSuite
import org.apache.commons.io.FileUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, RawLocalFileSystem}
import org.apache.spark.sql.classic

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}
import io.deltaic.spark.util.LocalSpark

class MissingFilesSuite extends FunSuite with LocalSpark {

  /** Local files, by the scheme of a store that Hadoop lists. */
  private val conf = new Configuration
  conf.set("fs.listed.impl", classOf[ListedFileSystem].getName)

  private val folder = FunFixture[LocalPath](
    _ => Files.createTempDirectory("missing"),
    path => FileUtils.deleteDirectory(path.toFile)
  )

  private def session = spark.asInstanceOf[classic.SparkSession]

  private def add(name: String, vector: Option[DeletionVectorDescriptor] = None): AddFile =
    AddFile(name, Map.empty, 1, 1, dataChange = true, deletionVector = vector)

  private def missing(root: LocalPath, files: Seq[AddFile]): Seq[Set[String]] =
    Seq("file", "listed").map { scheme =>
      val table = new Path(s"$scheme:$root")
      MissingFiles.among(session, table, conf, files).map(new Path(_).getName).toSet
    }

  private def create(root: LocalPath, names: Seq[String]): Unit =
    names.foreach(name => Files.createFile(root.resolve(name)))

  for (count <- Seq(1, 7, 8, 300, 2500))
    folder.test(s"some of $count files are missing") { root =>
      val names = (0 until count).map(n => s"$n.parquet")
      val (there, gone) = names.partition(_.hashCode % 3 == 0)
      create(root, there)
      assertEquals(missing(root, names.map(add(_))).distinct, Seq(gone.toSet))
    }

  folder.test("the listing of a directory with many other files is given up") { root =>
    create(root, (0 until 3000).map(n => s"other-$n"))
    val names = (0 until 10).map(n => s"$n.parquet")
    create(root, names.tail)
    assertEquals(missing(root, names.map(add(_))).distinct, Seq(Set(names.head)))
  }

  folder.test("many files of many directories are looked up by a job") { root =>
    val names = (0 until 2400).map(n => s"p=${n % 400}/$n.parquet")
    names.zipWithIndex.filter(_._2 % 3 > 0).foreach { case (name, _) =>
      Files.createDirectories(root.resolve(name).getParent)
      Files.createFile(root.resolve(name))
    }
    assertEquals(missing(root, names.map(add(_))).map(_.size), Seq(800, 800))
  }

  folder.test("all files of a directory that does not exist are missing") { root =>
    val names = (0 until 10).map(n => s"p=1/$n.parquet")
    assertEquals(missing(root, names.map(add(_))).map(_.size).distinct, Seq(10))
  }

  folder.test("files of deletion vectors are looked up, inline vectors are not") { root =>
    create(root, Seq("a", "b", "there.bin"))
    def at(name: String): Option[DeletionVectorDescriptor] =
      Some(DeletionVectorDescriptor("p", s"file:$root/$name", Some(1), 10, 1))
    val bitmap = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    val inline = Some(DeletionVectorDescriptor("i", bitmap, None, 40, 6))
    val files = Seq(add("a", at("there.bin")), add("b", at("gone.bin")), add("b", inline))
    assertEquals(missing(root, files).distinct, Seq(Set("gone.bin")))
  }
}

class ListedFileSystem extends RawLocalFileSystem {
  override def getScheme: String = "listed"
  override def getUri: java.net.URI = java.net.URI.create("listed:///")
}
