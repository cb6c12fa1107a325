package io.deltaic.maintenance

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.log.{LogStore, Progress}
import io.deltaic.protocol.{DeltaicException, LogPath}
import io.deltaic.replay.Snapshot

/**
 * Symlink manifests: lists of the data files of a table, one path per line, for engines that do not read the log (those
 * with Hive's `SymlinkTextInputFormat`). Each partition has one, in a folder with the partition's name. They are not
 * part of the protocol: file names and content are those of delta-spark.
 *
 * Readers of manifests do not support deletion vectors, so no manifest is written if a file has one.
 *
 * @param folderOf the folder of the manifest of a partition, relative to the root folder; empty without partitions
 * @param guard see [[CheckpointWriter]]
 */
private[maintenance] final class SymlinkManifests(
    snapshot: Snapshot,
    folderOf: Map[String, String] => String,
    store: LogStore,
    conf: Configuration,
    guard: () => Unit
) {
  import SymlinkManifests._

  private val root = new Path(snapshot.table, Folder)

  /** Whether there may be manifests already. */
  def exist: Boolean = store.status(root).isDefined

  /** Writes the manifests of all partitions, and deletes those of partitions that no longer exist. */
  def writeAll(): Unit = {
    val lists = listed(_ => true)
    replace(lists)
    (existing -- lists.keySet).foreach(delete)
  }

  /** The same for the partitions with these values only. */
  def write(partitions: Seq[Map[String, String]]): Unit = {
    val folders = partitions.map(folderOf).toSet
    val lists = listed(folders)
    replace(lists)
    (folders -- lists.keySet).foreach(delete)
  }

  private def listed(wanted: String => Boolean): Map[String, StringBuilder] = {
    val lists = mutable.HashMap.empty[String, StringBuilder]
    // A table without partitions has a manifest even if it has no file.
    if (snapshot.metadata.partitionColumns.isEmpty) lists("") = new StringBuilder
    Progress.of(phase("list the files"), None, "files")(progress =>
      snapshot.adds.foreach { add =>
        progress.add(1)
        if (add.deletionVector.isDefined)
          throw DeltaicException(
            "DELTAIC_MANIFEST_OF_DELETION_VECTORS",
            Map("table" -> snapshot.table.toString, "file" -> add.path)
          )
        val folder = folderOf(add.partitionValues)
        if (wanted(folder))
          lists
            .getOrElseUpdate(folder, new StringBuilder)
            .append(LogPath.toAbsolute(snapshot.table, add.path))
            .append('\n')
      }
    )
    lists.toMap
  }

  private def replace(lists: Map[String, StringBuilder]): Unit = {
    guard()
    store.makeDirectory(root)
    Progress.of(phase("write the manifests"), Some(lists.size.toLong), "manifests") { progress =>
      lists.foreach { case (folder, list) =>
        // One level at a time, because a deleted table must not reappear.
        folder.split('/').scanLeft("")((above, name) => s"$above/$name").tail.foreach { below =>
          if (folder.nonEmpty) store.makeDirectory(new Path(s"$root$below"))
        }
        store.replace(pathOf(folder), list.toString.getBytes(UTF_8))
        progress.add(1)
      }
    }
  }

  private def phase(what: String): String = s"GENERATE: $what, ${snapshot.table}"

  private def delete(folder: String): Unit = {
    store.delete(pathOf(folder))
    ()
  }

  private def pathOf(folder: String): Path =
    new Path(if (folder.isEmpty) s"$root/$Name" else s"$root/$folder/$Name")

  /** The folders of all existing manifests. */
  private def existing: Set[String] = {
    val prefix = root.toUri.getPath
    val found = Set.newBuilder[String]
    val files = root.getFileSystem(conf).listFiles(root, true)
    while (files.hasNext) {
      val path = files.next().getPath
      if (path.getName == Name)
        found += path.getParent.toUri.getPath.stripPrefix(prefix).stripPrefix("/")
    }
    found.result()
  }
}

private object SymlinkManifests {
  private val Folder = "_symlink_format_manifest"
  private val Name = "manifest"
}
