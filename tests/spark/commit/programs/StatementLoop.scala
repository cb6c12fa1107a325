import org.apache.spark.sql.SparkSession

/**
 * A Scala program that uses Spark and never Python: it runs each line of its input as a statement and
 * prints the rows, or the error, and an end mark. Lines that begin with `!` are its own commands.
 */
object StatementLoop {
  def main(arguments: Array[String]): Unit = {
    val spark = SparkSession.builder().getOrCreate()
    println("READY")
    scala.io.Source.stdin.getLines().foreach { line =>
      try
        line.split(" ").toList match {
          case List("!append", path, start, end) =>
            val rows = spark.range(start.toLong, end.toLong).toDF("id")
            rows.write.format("delta").mode("append").save(path)
          case List("!children") =>
            ProcessHandle.current().descendants().forEach { child =>
              println(s"ROW ${child.pid} ${child.info.commandLine.orElse("")}")
            }
          case _ =>
            spark.sql(line).collect().foreach(row => println(s"ROW ${row.mkString(",")}"))
        }
      catch {
        case e: Throwable =>
          println(s"ERROR ${causes(e).mkString(" | ")}".linesIterator.mkString(" "))
      }
      println("END")
    }
    spark.stop()
  }

  private def causes(e: Throwable): Seq[Throwable] =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).toSeq
}
