package io.deltaic.spark.bridge

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

/** Files that a commit, or a failed one, has no use for. */
private[spark] object UselessFiles {
  private val logger = LoggerFactory.getLogger(getClass)

  /** What cannot be deleted is left to VACUUM. */
  def delete(table: Path, files: Seq[Path], configuration: Configuration): Unit =
    files.foreach { file =>
      try file.getFileSystem(configuration).delete(file, false)
      catch { case NonFatal(e) => logger.warn(s"$table: $file is of no use and stays", e) }
    }
}
