package io.deltaic.dv

import java.nio.file.{Files, Path => LocalPath}
import java.util.Comparator

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{DeletionVectorDescriptor, DeltaicThrowable, ErrorConditions}

/** A separate directory for each test, and a store on the local file system. */
trait StoreFixture extends munit.FunSuite {

  val conf = new Configuration()
  val store = new DeletionVectorStore(conf)
  val dataFile = "part-0.parquet"

  val directory: FunFixture[LocalPath] = FunFixture(
    setup = _ => Files.createTempDirectory("deltaic-dv"),
    teardown = delete
  )

  def tablePath(directory: LocalPath): Path = new Path(directory.toUri)

  /**
   * Replaces a file and deletes its Hadoop checksum, which would detect the damage before our
   * checks.
   */
  def overwrite(file: LocalPath, bytes: Array[Byte]): Unit = {
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    Files.write(file, bytes): Unit
  }

  def local(table: LocalPath, descriptor: DeletionVectorDescriptor): LocalPath =
    LocalPath.of(descriptor.absolutePath(tablePath(table)).get.toUri)

  def listed(directory: LocalPath): Set[String] = {
    val files = Files.walk(directory)
    try {
      val names = Set.newBuilder[String]
      files.filter(Files.isRegularFile(_)).forEach(f => names += directory.relativize(f).toString)
      names.result()
    } finally files.close()
  }

  /** Checks that reading fails with `condition` and all its parameters, and returns the error. */
  def refusal(
      table: Path,
      descriptor: DeletionVectorDescriptor,
      condition: String
  ): DeltaicThrowable = {
    val error = intercept[DeltaicThrowable](store.read(table, dataFile, descriptor))
    assertEquals(error.condition, condition, error.parameters)
    requireFilledMessage(error)
    assertEquals(error.parameters("table"), table.toString)
    assertEquals(error.parameters("dataFile"), dataFile)
    assert(descriptor.uniqueId.startsWith(error.parameters("deletionVector").stripSuffix("...")))
    error
  }

  /**
   * Checks that `error-conditions.json` has the condition, and that its message has no unfilled
   * parameters.
   */
  def requireFilledMessage(error: DeltaicThrowable): Unit = {
    val named = ErrorConditions.parametersOf(error.condition)
    assert(named.nonEmpty, s"${error.condition} is not in error-conditions.json")
    assertEquals(named -- error.parameters.keySet, Set.empty[String], error.condition)
  }

  private def delete(directory: LocalPath): Unit = {
    val files = Files.walk(directory)
    try files.sorted(Comparator.reverseOrder[LocalPath]()).forEach(file => Files.delete(file))
    finally files.close()
  }
}
