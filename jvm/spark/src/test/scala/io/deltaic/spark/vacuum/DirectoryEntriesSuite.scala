package io.deltaic.spark.vacuum

import java.nio.file.{Files, Path => LocalPath}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

import munit.FunSuite
import org.apache.commons.io.FileUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{
  BlockLocation,
  FileStatus,
  LocatedFileStatus,
  Path,
  RawLocalFileSystem,
  RemoteIterator
}
import org.apache.hadoop.util.functional.RemoteIterators

class DirectoryEntriesSuite extends FunSuite {

  private val conf = new Configuration
  conf.set("fs.directories.impl", classOf[StoreOfDirectories].getName)
  conf.set("fs.prefixes.impl", classOf[StoreOfPrefixes].getName)

  private val folder = FunFixture[LocalPath](
    { _ =>
      val root = Files.createTempDirectory("entries")
      Files.createDirectories(root.resolve("p=1/deep"))
      Seq("p=1/a", "p=1/deep/b", "p=1/deep/c").foreach(name => Files.createFile(root.resolve(name)))
      root
    },
    path => FileUtils.deleteDirectory(path.toFile)
  )

  private def listed(path: Path): (Boolean, Set[String]) = {
    val entries = DirectoryEntries.below(path, conf)
    val found = mutable.Set.empty[String]
    entries.foreach(path) { entry => found += entry.path; () }
    (entries.isRecursive, found.toSet)
  }

  folder.test("a file system with a recursive listing of its own lists all that is below") { root =>
    val path = new Path(s"prefixes:$root/p=1")
    assertEquals(listed(path), (true, Set("a", "deep/b", "deep/c")))
  }

  folder.test("another file system lists one directory") { root =>
    val one = (false, Set("a", "deep"))
    assertEquals(listed(new Path(s"directories:$root/p=1")), one)
    assertEquals(listed(new Path(s"file:$root/p=1")), one)
  }
}

/** As HDFS and ABFS. */
class StoreOfDirectories extends RawLocalFileSystem {
  override def getScheme: String = "directories"
  override def getUri: java.net.URI = java.net.URI.create("directories:///")
}

/** As S3A and Aliyun OSS. */
class StoreOfPrefixes extends RawLocalFileSystem {
  override def getScheme: String = "prefixes"
  override def getUri: java.net.URI = java.net.URI.create("prefixes:///")

  override def listFiles(path: Path, isRecursive: Boolean): RemoteIterator[LocatedFileStatus] = {
    val below = Using.resource(Files.walk(LocalPath.of(path.toUri.getPath)))(
      _.iterator.asScala.filter(Files.isRegularFile(_)).toSeq
    )
    RemoteIterators.remoteIteratorFromIterable(
      below.map { file =>
        val status = new FileStatus(0, false, 1, 1, 0, new Path(s"prefixes:$file"))
        new LocatedFileStatus(status, Array.empty[BlockLocation])
      }.asJava
    )
  }
}
