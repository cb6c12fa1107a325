/** JVM options that Spark requires. */
object SparkRuntime {

  /** Spark's own list for Java 17 (its launcher adds the same): Spark accesses these packages by reflection. */
  private val openedPackages: Seq[String] = Seq(
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar"
  )

  val javaOptions: Seq[String] =
    openedPackages.map(p => s"--add-opens=java.base/$p=ALL-UNNAMED") ++ Seq(
      "-XX:+IgnoreUnrecognizedVMOptions",
      "-Djdk.reflect.useDirectMethodHandle=false",
      "-Dio.netty.tryReflectionSetAccessible=true",
      "-Dspark.ui.enabled=false",
      "-Dspark.sql.shuffle.partitions=2",
      "-Duser.timezone=UTC"
    )
}
