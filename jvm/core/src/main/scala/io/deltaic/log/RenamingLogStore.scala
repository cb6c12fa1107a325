package io.deltaic.log

import java.io.{IOException, OutputStream}
import java.util.EnumSet

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{
  CreateFlag,
  FSDataOutputStream,
  FileAlreadyExistsException,
  FileContext,
  Options,
  Path
}

/**
 * A store on a file system whose rename is atomic and, without the overwrite option, fails if the target exists, as
 * HDFS guarantees. `FileContext` specifies this; `FileSystem.rename` does not.
 */
private[log] final class RenamingLogStore(conf: Configuration) extends HadoopLogStore(conf) {

  override protected def create(path: Path, guard: Option[() => Unit])(
      write: OutputStream => Unit
  ): WriteOutcome = {
    val files = FileContext.getFileContext(path.toUri, conf)
    // An early check that saves writing the content; the rename decides.
    if (files.util.exists(path)) WriteOutcome.AlreadyExists
    else {
      val temporary = FileNames.temporary(path)
      try {
        prepare(path)(writeDurably(created(files, temporary, guard.isEmpty), write))
        guard.foreach(check => check())
        rename(files, temporary, path)
      } finally deleteQuietly(files, temporary)
    }
  }

  override def makeDirectory(path: Path): Unit =
    try
      FileContext.getFileContext(path.toUri, conf)
        .mkdir(path, FsPermission.getDirDefault, false)
    catch { case _: FileAlreadyExistsException => () }

  override def replace(path: Path, content: Array[Byte]): Unit = {
    val files = FileContext.getFileContext(path.toUri, conf)
    val temporary = FileNames.temporary(path)
    try {
      prepare(path)(writeDurably(created(files, temporary, makesParent = false), _.write(content)))
      files.rename(temporary, path, Options.Rename.OVERWRITE)
    } finally deleteQuietly(files, temporary)
  }

  private def created(
      files: FileContext,
      path: Path,
      makesParent: Boolean
  ): FSDataOutputStream = {
    val parent =
      if (makesParent) Options.CreateOpts.createParent()
      else Options.CreateOpts.donotCreateParent()
    files.create(path, EnumSet.of(CreateFlag.CREATE), parent)
  }

  private def writeDurably(out: FSDataOutputStream, write: OutputStream => Unit): Unit =
    try {
      write(out)
      out.hsync()
    } finally out.close()

  /**
   * No other writer uses the temporary name, so whether it still exists is more reliable than the reply of the file
   * system: a reply may be lost, a repeated request then finds that the name exists, and Azure's rename reports only
   * that it failed.
   */
  private def rename(files: FileContext, temporary: Path, path: Path): WriteOutcome = {
    val failure =
      try {
        files.rename(temporary, path, Options.Rename.NONE)
        None
      } catch { case e: IOException => Some(e) }
    (files.util.exists(temporary), files.util.exists(path), failure) match {
      case (false, true, _) => WriteOutcome.Written
      // The rename was a copy and left its source.
      case (true, true, _) if isSame(files, temporary, path) => WriteOutcome.Written
      case (true, true, _) => WriteOutcome.AlreadyExists
      case (true, _, Some(_: FileAlreadyExistsException)) => WriteOutcome.AlreadyExists
      case (true, false, None) => throw writeFailed(path, new IOException("nothing was renamed"))
      case (_, _, Some(e)) => throw e
      case (false, false, None) =>
        throw new IOException(s"$temporary was not renamed and no longer exists")
    }
  }

  private def isSame(files: FileContext, temporary: Path, path: Path): Boolean =
    Using.resources(files.open(temporary), files.open(path))(HadoopLogStore.isSame)

  /** A leftover file is harmless, and the outcome is already final. */
  private def deleteQuietly(files: FileContext, temporary: Path): Unit =
    try {
      files.delete(temporary, false)
      ()
    } catch { case _: IOException => () }
}
