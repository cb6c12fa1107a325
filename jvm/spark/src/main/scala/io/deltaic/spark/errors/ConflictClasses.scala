package io.deltaic.spark.errors

import java.lang.invoke.{MethodHandle, MethodHandles, MethodType}
import java.util.concurrent.ConcurrentHashMap
import java.util.{ServiceConfigurationError, ServiceLoader}

import scala.jdk.OptionConverters._

import org.apache.spark.SparkEnv
import org.apache.xbean.asm9.Opcodes._
import org.apache.xbean.asm9.{ClassWriter, Type}

import io.deltaic.protocol.ErrorConditions

/** The classes of conflicts that the jar of the API for Scala and Java has. */
trait ConflictExceptions {

  /**
   * @param className the simple name of the class in delta-spark
   * @param message as rendered
   * @return none if there is no such class
   */
  def create(
      className: String,
      condition: String,
      message: String,
      parameters: Map[String, String],
      cause: Throwable
  ): Option[DeltaicConcurrentModificationException]
}

/**
 * Conflicts are of the classes in `io.delta.exceptions` if the jar of the API for Scala and Java is there.
 *
 * A server of Spark Connect sends the names of an exception's classes, by which clients find theirs, and
 * delta-spark's client knows only names in `io.delta.exceptions`. So in a server with the plugins a conflict is of a
 * class of such a name, besides being a [[DeltaicConcurrentModificationException]].
 *
 * Without that jar, they are made at run time and belong to a class loader of their own. In Deltaic's jar they would
 * hide those of delta-spark in an application that has both jars.
 */
private[errors] object ConflictClasses {
  private type Conflict = DeltaicConcurrentModificationException

  private val PluginSetting = "spark.connect.extensions.relation.classes"
  private val Plugins = Seq(
    "io.deltaic.spark.connect.DeltaicRelationPlugin",
    "org.apache.spark.sql.connect.delta.DeltaRelationPlugin"
  )
  private val parent = classOf[Conflict]
  private val constructors = new ConcurrentHashMap[String, MethodHandle]

  def create(condition: String, parameters: Map[String, String], cause: Throwable): Conflict = {
    val name = ErrorConditions.of(condition).pythonClass
    val message = ErrorConditions.render(condition, parameters)
    ofApi.flatMap(_.create(name, condition, message, parameters, cause)).getOrElse {
      if (servesClients) {
        val constructor = constructors.computeIfAbsent(name, define(_))
        constructor.invokeWithArguments(condition, parameters, cause).asInstanceOf[Conflict]
      } else new Conflict(condition, parameters, cause)
    }
  }

  @volatile private var known = Option.empty[ConflictExceptions]

  /** A class loader of the user may have the jar of the API for Scala and Java, and ours not. */
  private def ofApi: Option[ConflictExceptions] = {
    if (known.isEmpty) {
      val loaders = Seq(parent.getClassLoader, Thread.currentThread.getContextClassLoader)
      known = loaders.filter(_ != null).flatMap(find).headOption
    }
    known
  }

  /** None, too, if the loader has another copy of the interface. */
  private def find(loader: ClassLoader): Option[ConflictExceptions] =
    try ServiceLoader.load(classOf[ConflictExceptions], loader).findFirst.toScala
    catch { case _: ServiceConfigurationError => None }

  private def servesClients: Boolean =
    Option(SparkEnv.get).flatMap(_.conf.getOption(PluginSetting)).exists { plugins =>
      Plugins.exists(plugins.contains)
    }

  private object Loader extends ClassLoader(parent.getClassLoader) {
    def define(name: String, bytes: Array[Byte]): Class[_] =
      defineClass(name, bytes, 0, bytes.length)
  }

  /** A class of the name whose only constructor passes its arguments on. */
  private def define(name: String): MethodHandle = {
    val constructor = parent.getConstructor(classOf[String], classOf[Map[_, _]], classOf[Throwable])
    val descriptor = Type.getConstructorDescriptor(constructor)
    val superclass = Type.getInternalName(parent)
    val writer = new ClassWriter(ClassWriter.COMPUTE_MAXS)
    writer.visit(V17, ACC_PUBLIC, s"io/delta/exceptions/$name", null, superclass, null)
    val code = writer.visitMethod(ACC_PUBLIC, "<init>", descriptor, null, null)
    code.visitCode()
    (0 to constructor.getParameterCount).foreach(code.visitVarInsn(ALOAD, _))
    code.visitMethodInsn(INVOKESPECIAL, superclass, "<init>", descriptor, false)
    code.visitInsn(RETURN)
    code.visitMaxs(0, 0)
    code.visitEnd()
    writer.visitEnd()
    val found = Loader.define(s"io.delta.exceptions.$name", writer.toByteArray)
    val signature = MethodType.fromMethodDescriptorString(descriptor, Loader)
    MethodHandles.publicLookup().findConstructor(found, signature)
  }
}
