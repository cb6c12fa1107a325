val pythonPackage =
  settingKey[File]("The Python package, whose version, resources and sources the jar carries")

ThisBuild / organization := "io.deltaic"
ThisBuild / pythonPackage := (LocalRootProject / baseDirectory).value / "python" / "deltaic"
ThisBuild / version := PythonSources.version((ThisBuild / pythonPackage).value)
ThisBuild / scalaVersion := Dependencies.scala
ThisBuild / versionScheme := Some("early-semver")
ThisBuild / semanticdbEnabled := true
ThisBuild / semanticdbVersion := Dependencies.semanticdb

// What a POM has to say, and where `publish` puts the artifacts.
ThisBuild / description := "An independent Delta Lake engine for Apache Spark"
ThisBuild / homepage := Some(url("https://deltaic.io"))
ThisBuild / licenses := Seq(License.Apache2)
ThisBuild / developers := List(
  Developer("deltaic", "The Deltaic developers", "developers@deltaic.io", url("https://deltaic.io"))
)
ThisBuild / scmInfo := Some(
  ScmInfo(url("https://deltaic.io/source"), "scm:git:https://deltaic.io/source.git")
)
ThisBuild / publishTo := Some(
  Resolver.file("dist", (LocalRootProject / baseDirectory).value / "dist" / "maven")(
    Resolver.mavenStylePatterns
  )
)
ThisBuild / publishMavenStyle := true
Global / excludeLintKeys ++= Set(
  bomFileName,
  bomFormat,
  includeBomTimestamp,
  scalafmt / sourceDirectories
)

// A warning is an error. Three kinds are not, because scalafix can only remove what still compiles; `make lint`
// fails on each of them all the same. The rule on the right wins.
ThisBuild / scalacOptions ++= Seq(
  "-release:17",
  "-encoding:utf8",
  "-deprecation",
  "-feature",
  "-unchecked",
  "-Xlint:_",
  "-Wunused:_",
  "-Wconf:any:e,cat=unused-imports:w,cat=unused-locals:w,cat=unused-privates:w"
)

// Every suite runs in a JVM of its own module, one after another: each starts Spark or races for the same table.
lazy val shared = Seq(
  // Spark has it.
  autoScalaLibrary := false,
  libraryDependencies += "org.scala-lang" % "scala-library" % scalaVersion.value % Provided,
  // A bill of what the module is compiled with; all of it is Spark's own, and none of it is in a jar of ours.
  bomFileName := s"${moduleName.value}-${version.value}.cdx.json",
  bomFormat := "json",
  includeBomTimestamp := false,
  // The names of local variables, which only a debugger shows, would be a part of the jar that counts.
  Compile / compile / scalacOptions += "-g:line",
  // A link that scaladoc cannot resolve is no reason to have no pages.
  Compile / doc / scalacOptions ~= (_.filterNot(o => o.startsWith("-W") || o.startsWith("-Xlint"))),
  Test / fork := true,
  Test / parallelExecution := false,
  Test / javaOptions ++= SparkRuntime.javaOptions ++ Seq(
    "-Xmx2g",
    // Tests are short: the second compiler and a parallel collector cost more than they win. The
    // first compiler alone has too small a code cache for Spark, and compiles again what it threw out.
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=256m",
    "-XX:+UseSerialGC",
    "-XX:NewSize=512m",
    "-XX:MetaspaceSize=256m",
    // What a suite leaves behind goes with `make clean`, not into the machine's own directory.
    s"-Djava.io.tmpdir=${IO.createDirectory(target.value / "tmp"); target.value / "tmp"}",
    s"-Dderby.system.home=${target.value / "derby"}",
    s"-Dspark.sql.warehouse.dir=${target.value / "warehouse"}"
  ),
  Test / testOptions += Tests.Argument(TestFrameworks.MUnit, "-b")
)

lazy val core = project
  .in(file("jvm/core"))
  .settings(shared)
  .settings(
    name := "deltaic-core",
    libraryDependencies ++= Dependencies.core ++ Dependencies.test ++ Dependencies.miniCluster,
    Compile / resourceGenerators += Def.task {
      val jsons = PythonSources.resources(pythonPackage.value)
      PythonSources.mirror(
        jsons.map(f => f -> s"io/deltaic/${f.getName}"),
        (Compile / resourceManaged).value / "shared"
      )
    },
    Compile / resourceGenerators += Def.task {
      val file = (Compile / resourceManaged).value / "version" / "io" / "deltaic" / "version.txt"
      IO.write(file, version.value)
      Seq(file)
    },
    Compile / managedResourceDirectories := {
      val managed = (Compile / resourceManaged).value
      Seq(managed / "shared", managed / "version")
    },
    Compile / compile := {
      BuildChecks.noSpark((Compile / dependencyClasspath).value.files)
      (Compile / compile).value
    }
  )

/** The jars of another Spark than that of Maven's registry, if the build is for one, and classes in a folder of its own. */
lazy val onSpark = Dependencies.otherSpark.toSeq.flatMap { jars =>
  Seq(
    Compile / unmanagedJars ++= (jars * "*.jar").classpath,
    target := baseDirectory.value / "target" / s"spark-${Dependencies.sparkLine}"
  )
}

lazy val spark = project
  .in(file("jvm/spark"))
  .dependsOn(core % "compile->compile;test->test")
  .settings(shared)
  .settings(onSpark)
  .settings(
    Compile / unmanagedSourceDirectories +=
      (Compile / sourceDirectory).value / s"scala-spark-${Dependencies.sparkLine}",
    // The sources for the other Spark, too.
    Compile / scalafmt / sourceDirectories ++=
      ((Compile / sourceDirectory).value * "scala-spark-*" --- (Compile / unmanagedSourceDirectories).value).get()
  )
  .configs(Grammar.Antlr)
  .settings(Grammar.settings)
  .settings(
    name := "deltaic-spark",
    libraryDependencies ++= Dependencies.core ++ Dependencies.sparkSql ++ Dependencies.test,
    Compile / resourceGenerators += Def.task {
      val sources = PythonSources.sources(pythonPackage.value)
      val parent = pythonPackage.value.getParentFile
      PythonSources.mirror(
        sources.map(f => f -> s"deltaic-python/${IO.relativize(parent, f).get}"),
        (Compile / resourceManaged).value
      )
    },
    moduleName := s"deltaic-spark_${Dependencies.sparkLine}",
    assembly / assemblyJarName := s"${moduleName.value}_2.13-${version.value}.jar",
    assembly / assemblyOutputPath :=
      (LocalRootProject / baseDirectory).value / "build" / "jars" / (assembly / assemblyJarName).value,
    assembly / assemblyOption ~= (_.withIncludeScala(false)),
    assembly / assemblyExcludedJars := (Compile / unmanagedJars).value,
    assembly / test := {},
    assembly / packageOptions +=
      Package.ManifestAttributes("Implementation-Version" -> version.value),
    assembly := {
      val jar = assembly.value
      BuildChecks.onlyOurs(jar)
      jar
    }
  )

/** The API of delta-spark for Scala and Java, under its names. */
lazy val deltaApi = project
  .in(file("jvm/delta-api"))
  .dependsOn(spark % "compile->compile;test->test")
  .settings(shared)
  .settings(onSpark)
  .configs(Dependencies.DeltaSpark)
  .settings(
    name := "deltaic-delta-api",
    moduleName := s"deltaic-delta-api_${Dependencies.sparkLine}",
    libraryDependencies ++= Dependencies.sparkSql ++ Dependencies.core ++ Dependencies.test,
    libraryDependencies ++= Dependencies.deltaSpark,
    ivyConfigurations += Dependencies.DeltaSpark,
    Test / javaOptions += {
      val jars = update.value.select(configurationFilter(Dependencies.DeltaSpark.name))
      jars.mkString("-Ddeltaic.test.deltaSpark=", java.io.File.pathSeparator, "")
    },
    Compile / packageBin / artifactPath :=
      (LocalRootProject / baseDirectory).value / "build" / "jars" /
        s"${moduleName.value}_2.13-${version.value}.jar",
    // The examples of the guide, in both languages.
    Test / unmanagedSourceDirectories ++= Seq("scala", "java").map { language =>
      (LocalRootProject / baseDirectory).value / "examples" / language
    },
    Test / envVars += "PYSPARK_PYTHON" ->
      ((LocalRootProject / baseDirectory).value / ".venv" / "bin" / "python").getPath
  )

lazy val root = project
  .in(file("."))
  .aggregate(core, spark, deltaApi)
  .settings(name := "deltaic", publish / skip := true)
