import sbt._

/** All dependency versions of the build. Libraries that Spark ships are `Provided`. */
object Dependencies {

  /**
   * The Scala of the PySpark 4.2.0 distribution; a different one would be incompatible with its library at run time.
   */
  val scala = "2.13.18"
  val spark = "4.2.0"
  val hadoop = "3.5.0"

  /** The version of the ANTLR run time that Spark ships: the generated parser must match it. */
  val antlr = "4.13.1"

  /** The oldest release with a compiler plugin for [[scala]]; scalafix needs it. */
  val semanticdb = "4.14.2"

  /** Libraries of the Spark distribution that jvm/core may use. No Spark among them. */
  val core: Seq[ModuleID] = Seq(
    "org.apache.hadoop" % "hadoop-client-api" % hadoop,
    "org.apache.parquet" % "parquet-hadoop" % "1.17.0",
    "org.roaringbitmap" % "RoaringBitmap" % "1.6.10",
    "com.fasterxml.jackson.core" % "jackson-databind" % "2.21.2",
    "org.slf4j" % "slf4j-api" % "2.0.17"
  ).map(_ % Provided)

  /**
   * The jars of another PySpark to compile with: of that in an environment of Python, which a system property names.
   * The registry of jars need not have them.
   */
  val otherSpark: Option[File] = sys.props.get("deltaic.spark.environment").map { environment =>
    (file(environment) / "lib" * "python*" / "site-packages" / "pyspark" / "jars").get().headOption
      .getOrElse(sys.error(s"$environment has no PySpark"))
  }

  /** Which sources of the shim fit the jars. */
  val sparkLine: String = otherSpark.fold(spark) { jars =>
    val name = "spark-sql_2.13-(.*)\\.jar".r
    jars.list().toSeq.collectFirst { case name(version) => version }
      .getOrElse(sys.error(s"$jars has no jar of Spark SQL"))
  }.split('.').take(2).mkString(".")

  val sparkSql: Seq[ModuleID] = Seq("org.antlr" % "antlr4-runtime" % antlr % Provided) ++
    (if (otherSpark.isDefined) Nil
     else
       Seq(
         "org.apache.spark" %% "spark-sql" % spark % Provided,
         // It contains the classes that it shades.
         ("org.apache.spark" %% "spark-connect" % spark % Provided).intransitive()
       ))

  /** The class path of delta-spark, which no code of ours is compiled with: a test compares our API with it. */
  val DeltaSpark: Configuration = Configuration.of("DeltaSpark", "delta-spark").hide

  val deltaSpark: Seq[ModuleID] = Seq("delta-spark_4.2_2.13", "delta-storage").map { name =>
    ("io.delta" % name % "4.4.0" % DeltaSpark).intransitive()
  }

  val test: Seq[ModuleID] = Seq(
    "org.scalameta" %% "munit" % "1.1.1" % Test,
    "org.scalameta" %% "munit-scalacheck" % "1.1.0" % Test,
    "com.tngtech.archunit" % "archunit" % "1.4.1" % Test,
    "org.apache.hadoop" % "hadoop-client-runtime" % hadoop % Test
  )

  /** A real HDFS for the tests of the log store. */
  val miniCluster: Seq[ModuleID] = Seq(
    "org.apache.hadoop" % "hadoop-client-minicluster" % hadoop % Test
  )
}
