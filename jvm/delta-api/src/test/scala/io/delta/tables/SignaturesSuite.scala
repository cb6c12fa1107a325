package io.delta.tables

import java.lang.reflect.Method
import java.net.{URL, URLClassLoader}
import java.util.jar.JarFile

import scala.jdk.CollectionConverters._
import scala.util.Using

/** Compares the public classes with those of delta-spark's jar, which the build passes in a system property. */
class SignaturesSuite extends munit.FunSuite {

  private val tables = Seq(
    "DeltaTable",
    "DeltaTable$",
    "DeltaMergeBuilder",
    "DeltaMergeMatchedActionBuilder",
    "DeltaMergeNotMatchedActionBuilder",
    "DeltaMergeNotMatchedBySourceActionBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTableBuilder",
    "DeltaColumnBuilder"
  ).map("io.delta.tables." + _)

  private val others = Seq(
    "io.delta.implicits.package",
    "io.delta.implicits.package$DeltaDataFrameReader",
    "io.delta.implicits.package$DeltaDataFrameWriter",
    "io.delta.implicits.package$DeltaDataStreamReader",
    "io.delta.implicits.package$DeltaDataStreamWriter",
    "io.delta.package"
  )

  private val exceptions = Seq(
    "DeltaConcurrentModificationException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException"
  ).map("io.delta.exceptions." + _)

  /** Public in the class file only: `private[tables]` in the source. */
  private val hidden = Set("df", "deltaLog", "withClause")

  test("no public class of delta-spark is left out") {
    val packages = Seq("io/delta/tables/", "io/delta/exceptions/", "io/delta/implicits/")
    val theirs = DeltaSpark.getURLs.toSeq.flatMap { jar =>
      Using.resource(new JarFile(jar.getPath))(_.entries.asScala.map(_.getName).toSeq)
    }.filter(entry => packages.exists(entry.startsWith) && entry.endsWith(".class"))
      .filterNot(entry => entry.contains("/execution/") || entry.contains("$anonfun"))
      .map(_.stripSuffix(".class").replace('/', '.'))
    assert(theirs.nonEmpty)
    val ours = (tables ++ others ++ exceptions).toSet
    // The rest are companions.
    assertEquals(theirs.map(_.stripSuffix("$")).toSet -- ours, Set.empty[String])
  }

  (tables ++ others).foreach { name =>
    test(s"$name has the public methods of delta-spark") {
      val theirs = signatures(DeltaSpark.loadClass(name))
      assert(theirs.nonEmpty)
      assertEquals(theirs -- signatures(Class.forName(name)), Set.empty[String])
    }
  }

  exceptions.foreach { name =>
    test(s"$name is there, has a message and is caught as in delta-spark") {
      val theirs = DeltaSpark.loadClass(name)
      val ours = Class.forName(name)
      theirs.getConstructor(classOf[String])
      ours.getConstructor(classOf[String])
      assertEquals(publicSupertypes(theirs) -- publicSupertypes(ours), Set.empty[String])
    }
  }

  /** Those that programs can name in a catch clause. */
  private def publicSupertypes(exception: Class[_]): Set[String] =
    Iterator.iterate[Class[_]](exception)(_.getSuperclass).takeWhile(_ != null)
      .map(_.getName).filterNot(_.startsWith("org.apache.spark.sql.delta")).toSet

  private def signatures(owner: Class[_]): Set[String] = {
    val inherited = owner.getInterfaces.flatMap(_.getMethods).map(_.getName).toSet
    owner.getDeclaredMethods.toSeq
      .filter(method => java.lang.reflect.Modifier.isPublic(method.getModifiers))
      .filterNot(method => method.isSynthetic || method.getName.contains("$"))
      .filterNot(method => hidden(method.getName) || inherited(method.getName))
      .filterNot(usesInternals)
      .map(shown).toSet
  }

  private def usesInternals(method: Method): Boolean =
    (method.getReturnType +: method.getParameterTypes.toSeq).map(_.getName)
      .exists(name => name.contains(".sql.delta.") || name.contains(".catalyst."))

  private def shown(method: Method): String =
    method.getParameterTypes.map(_.getName)
      .mkString(s"${method.getReturnType.getName} ${method.getName}(", ", ", ")")

  /** Loads what is in delta-spark's jar from there, and the rest as usual. */
  private object DeltaSpark
      extends URLClassLoader(
        sys.props("deltaic.test.deltaSpark").split(java.io.File.pathSeparator)
          .map(path => new java.io.File(path).toURI.toURL): Array[URL],
        getClass.getClassLoader
      ) {
    override def loadClass(name: String, resolve: Boolean): Class[_] =
      if (findResource(name.replace('.', '/') + ".class") == null) super.loadClass(name, resolve)
      else Option(findLoadedClass(name)).getOrElse(findClass(name))
  }
}
