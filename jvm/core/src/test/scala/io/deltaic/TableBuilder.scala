package io.deltaic

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.protocol._
import io.deltaic.replay.DeltaLog

/** Builds a Delta table in a temporary directory, commit by commit. */
final class TableBuilder(val directory: LocalPath) {

  val log: LocalPath = Files.createDirectories(directory.resolve("_delta_log"))
  val conf = new Configuration()
  val path = new Path(directory.toUri)

  def open(): DeltaLog = new DeltaLog(path, conf)

  def commit(version: Long, actions: Action*): TableBuilder =
    raw(version, actions.map(ActionJson.write).mkString("", "\n", "\n"))

  def raw(version: Long, text: String): TableBuilder = file(f"$version%020d.json", text)

  def file(name: String, text: String): TableBuilder = {
    Files.write(log.resolve(name), text.getBytes(UTF_8))
    this
  }

  def delete(name: String): TableBuilder = {
    Files.delete(log.resolve(name))
    this
  }

  /** Sets the modification time of a commit. */
  def committedAt(version: Long, timeMs: Long): TableBuilder = {
    Files.setLastModifiedTime(log.resolve(f"$version%020d.json"), FileTime.fromMillis(timeMs))
    this
  }
}

object TableBuilder {

  val protocol: Protocol = Protocol(1, 2)
  val metadata: Metadata = Metadata("test-table", schemaString = Metadata.EmptySchema)

  def apply(): TableBuilder = new TableBuilder(Files.createTempDirectory("deltaic-table"))

  /** A table whose version 0 has these actions, and protocol and metaData. */
  def created(actions: Action*): TableBuilder =
    apply().commit(0, Seq(protocol, metadata) ++ actions: _*)

  def add(path: String, sizeBytes: Long = 1, dv: Option[DeletionVectorDescriptor] = None): AddFile =
    AddFile(path, Map.empty, sizeBytes, 10, dataChange = true, deletionVector = dv)

  def dv(name: String): DeletionVectorDescriptor =
    DeletionVectorDescriptor("p", s"file:///$name.bin", Some(1), 10, 1)

  /** The folder of reference material beside the repository. */
  def shared: LocalPath = {
    val place = sys.props.get("deltaic.shared").orElse(sys.env.get("DELTAIC_SHARED"))
    val found = place.map(LocalPath.of(_)).getOrElse {
      Iterator
        .iterate(LocalPath.of("").toAbsolutePath)(_.getParent)
        .takeWhile(_ != null)
        .map(_.resolve("shared"))
        .find(p => Files.isDirectory(p.resolve("tables")))
        .getOrElse(LocalPath.of("/work/shared"))
    }
    require(Files.isDirectory(found.resolve("tables")), s"set DELTAIC_SHARED: no tables in $found")
    found
  }
}
