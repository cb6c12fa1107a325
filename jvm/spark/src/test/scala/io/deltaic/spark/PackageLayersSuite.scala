package io.deltaic.spark

import io.deltaic.PackageLayers
import io.deltaic.spark.PackageLayersSuite.{inSpark, internals, namedAsOthers, own}

class PackageLayersSuite
    extends PackageLayers(
      own("") ++ internals("") ++ Seq(inSpark, namedAsOthers),
      internals("") ++ Seq(inSpark) ++ internals("scan", "merge") ++
        own(
          "shim",
          "errors",
          "util",
          "schema",
          "metrics",
          "skipping",
          "scan.deletionvectors",
          "scan.files",
          "scan.vectorized",
          "scan",
          "changes",
          "commit.lineage",
          "commit",
          "commit.reads",
          "curve",
          "write.parquet",
          "write.files",
          "write",
          "rowlevel",
          "optimize",
          "vacuum",
          "catalog",
          "catalog.definition",
          "catalog.target",
          "restore",
          "downgrade",
          "convert",
          "clone",
          "stream",
          "sql.command",
          "sql.analysis",
          "sql.analysis.target",
          "sql.analysis.merge",
          "sql.analysis.columns",
          "sql.analysis.stream",
          "sql.grammar",
          "sql.parser",
          "sql.optimizer",
          "sql.planning",
          "",
          "connect"
        ) ++ Seq(namedAsOthers)
    )

object PackageLayersSuite {
  private def own(packages: String*): Seq[String] = qualified("io.deltaic.spark", packages)

  /** Access to API that is private to Spark. */
  private def internals(packages: String*): Seq[String] =
    qualified("org.apache.spark.sql.deltaic", packages)

  /** Of a class that overrides a signature which is private to it. */
  private val inSpark = "org.apache.spark.sql.execution.datasources.parquet"

  /** Of the plugins of Spark Connect, under the names that delta-spark's documentation sets. */
  private val namedAsOthers = "org.apache.spark.sql.connect.delta"

  private def qualified(base: String, packages: Seq[String]): Seq[String] =
    packages.map(name => if (name.isEmpty) base else s"$base.$name")
}
