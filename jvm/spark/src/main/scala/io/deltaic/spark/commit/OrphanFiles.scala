package io.deltaic.spark.commit

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

/** Files that no committed version references. */
private[spark] object OrphanFiles {
  private val logger = LoggerFactory.getLogger(getClass)

  /** Files that cannot be deleted are left to VACUUM. */
  def delete(table: Path, files: Seq[Path], configuration: Configuration): Unit =
    files.foreach { file =>
      try file.getFileSystem(configuration).delete(file, false)
      catch {
        case NonFatal(e) => logger.warn(s"$table: the unreferenced file $file is not deleted", e)
      }
    }
}
