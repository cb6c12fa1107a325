package io.deltaic

import scala.jdk.CollectionConverters._

import com.tngtech.archunit.core.domain.JavaClasses
import com.tngtech.archunit.core.importer.ClassFileImporter

/**
 * Packages of a module depend only on packages before them (docs/architecture.md). It is the counterpart of
 * import-linter's contracts for Python.
 *
 * @param roots the packages that all others are in
 * @param layers all packages of the module, from the lowest to the highest
 */
abstract class PackageLayers(roots: Seq[String], layers: Seq[String]) extends PatientSuite {
  private val rank: Map[String, Int] = layers.zipWithIndex.toMap

  private lazy val classes: JavaClasses = new ClassFileImporter()
    .withImportOption(location => !location.contains("/test-classes/") && !location.isJar)
    .importPackages(roots: _*)

  test("every package has its layer") {
    assertEquals(classes.asScala.map(_.getPackageName).toSet, layers.toSet)
  }

  test("no package depends on one after it") {
    val dependencies = for {
      origin <- classes.asScala.toSeq
      dependency <- origin.getDirectDependenciesFromSelf.asScala
    } yield origin -> dependency.getTargetClass.getBaseComponentType
    assert(dependencies.length > 1000)
    val upward = dependencies.collect {
      case (origin, target) if isUpward(origin.getPackageName, target.getPackageName) =>
        s"${origin.getName} depends on ${target.getName}"
    }
    assertEquals(upward.distinct.sorted, Nil)
  }

  private def isUpward(from: String, to: String): Boolean =
    rank.get(from).zip(rank.get(to)).exists { case (lower, upper) => lower < upper }
}
