package io.deltaic.spark

import scala.jdk.CollectionConverters._

import com.tngtech.archunit.core.domain.{JavaClass, JavaClasses}
import com.tngtech.archunit.core.importer.{ClassFileImporter, ImportOption}
import munit.FunSuite

/**
 * Packages depend only on packages before them (docs/architecture.md). It is the counterpart of import-linter's
 * contracts for Python.
 */
class PackageLayersSuite extends FunSuite {
  private val root = "io.deltaic.spark"
  private val internals = "org.apache.spark.sql.deltaic"

  /** The packages of this module, from the lowest to the entry points. */
  private val layers: Seq[String] =
    Seq("", "scan", "merge").map(qualified(internals, _)) ++ Seq(
      "errors",
      "util",
      "schema",
      "skipping",
      "scan.deletionvectors",
      "scan.files",
      "scan.vectorized",
      "scan",
      "changes",
      "commit",
      "commit.reads",
      "write.files",
      "write",
      "rowlevel",
      "catalog",
      "catalog.definition",
      "catalog.target",
      "stream",
      "sql.command",
      "sql.analysis",
      "sql.analysis.merge",
      "sql.analysis.columns",
      "sql.grammar",
      "sql.parser",
      "sql.optimizer",
      "sql.planning",
      ""
    ).map(qualified(root, _))

  private val rank: Map[String, Int] = layers.zipWithIndex.toMap

  private lazy val classes: JavaClasses = new ClassFileImporter()
    .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
    .withImportOption(!_.contains("/test-classes/"))
    .importPackages(root, internals)

  private lazy val dependencies: Seq[(JavaClass, JavaClass)] = for {
    origin <- classes.asScala.toSeq
    dependency <- origin.getDirectDependenciesFromSelf.asScala
  } yield origin -> dependency.getTargetClass.getBaseComponentType

  test("every package is in the list of layers") {
    val packages = classes.asScala.map(_.getPackageName).toSet
    assertEquals(packages.diff(layers.toSet), Set.empty[String])
    assertEquals(layers.toSet.diff(packages), Set.empty[String])
  }

  test("no package depends on one after it") {
    assert(dependencies.length > 1000)
    val upwards = dependencies.collect {
      case (origin, target) if isUpward(origin.getPackageName, target.getPackageName) =>
        s"${origin.getName} depends on ${target.getName}"
    }
    assertEquals(upwards.distinct.sorted, Nil)
  }

  private def isUpward(from: String, to: String): Boolean =
    rank.get(from).zip(rank.get(to)).exists { case (lower, upper) => lower < upper }

  private def qualified(base: String, name: String): String =
    if (name.isEmpty) base else s"$base.$name"
}
