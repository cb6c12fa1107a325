import sbt.Keys._
import sbt._

/** Generates the parser of our own SQL statements from an ANTLR grammar. */
object Grammar {

  /** The ANTLR tool; its run time comes from Spark. */
  val Antlr: Configuration = config("antlr").hide

  private val packageName = "io.deltaic.spark.sql.grammar"

  val settings: Seq[Setting[_]] = inConfig(Antlr)(Defaults.configSettings) ++ Seq(
    ivyConfigurations += Antlr,
    libraryDependencies += "org.antlr" % "antlr4" % Dependencies.antlr % Antlr,
    Compile / sourceGenerators += Def.task {
      val grammars = ((Compile / sourceDirectory).value / "antlr4" * "*.g4").get().toSet
      val output = (Compile / sourceManaged).value / "antlr4"
      val classpath = Classpaths.managedJars(Antlr, Set("jar"), update.value).files
      val log = streams.value.log
      val generate = FileFunction.cached(streams.value.cacheDirectory / "antlr4") { grammars =>
        IO.delete(output)
        val options = Seq("-package", packageName, "-visitor", "-no-listener", "-Werror")
        val arguments = options ++ Seq("-o", output.getPath) ++ grammars.map(_.getPath)
        val tool = Seq("-cp", classpath.mkString(java.io.File.pathSeparator), "org.antlr.v4.Tool")
        val status = Fork.java(ForkOptions(), tool ++ arguments)
        if (status != 0) sys.error(s"ANTLR refused ${grammars.mkString(", ")}")
        log.info(s"ANTLR made the parser of ${grammars.map(_.getName).mkString(", ")}")
        (output ** "*.java").get().toSet
      }
      generate(grammars).toSeq
    }
  )
}
