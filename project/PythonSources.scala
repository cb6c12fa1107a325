import sbt._
import sbt.io.{CopyOptions, IO}

/** The parts of the Python package that the JVM build uses: its version, its resources and its sources. */
object PythonSources {

  private val versionLine = """(?m)^__version__ = "([^"]+)"$""".r

  /** The version of the project, which is defined only in the Python package. */
  def version(packageDir: File): String = {
    val file = packageDir / "_version.py"
    versionLine
      .findFirstMatchIn(IO.read(file))
      .map(_.group(1))
      .getOrElse(sys.error(s"""$file holds no line __version__ = "...""""))
  }

  /** The JSON resources that both languages read. */
  def resources(packageDir: File): Seq[File] = (packageDir / "resources" * "*.json").get().sorted

  /** Every file that a Python process needs that is started from the jar. */
  def sources(packageDir: File): Seq[File] =
    ((packageDir ** "*.py").get() ++ resources(packageDir)).sorted

  /** Synchronizes `to` with `from`, copying only changed files, and returns the copies. */
  def mirror(from: Seq[(File, String)], to: File): Seq[File] = {
    val wanted = from.map { case (source, relative) => source -> to / relative }
    val keep = wanted.map(_._2).toSet
    (to ** AllPassFilter).get().filter(f => f.isFile && !keep(f)).foreach(IO.delete)
    wanted.foreach { case (source, copy) =>
      val same = copy.isFile && java.util.Arrays.equals(IO.readBytes(source), IO.readBytes(copy))
      if (!same) IO.copyFile(source, copy, CopyOptions().withOverwrite(true))
    }
    wanted.map(_._2)
  }
}
