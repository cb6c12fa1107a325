ThisBuild / organization := "io.deltaic"
ThisBuild / version := "0.1.0"
ThisBuild / scalaVersion := Dependencies.scala
ThisBuild / javacOptions ++= Seq("--release", "17")
ThisBuild / scalacOptions ++= Seq("-release:17", "-deprecation", "-feature", "-unchecked", "-Xlint:_", "-Wunused:_")

lazy val core = project.in(file("jvm/core"))
  .settings(name := "deltaic-core", libraryDependencies ++= Dependencies.core ++ Dependencies.test)

lazy val spark = project.in(file("jvm/spark"))
  .dependsOn(core % "compile->compile;test->test")
  .settings(name := "deltaic-spark", libraryDependencies ++= Dependencies.sparkSql ++ Dependencies.test)
