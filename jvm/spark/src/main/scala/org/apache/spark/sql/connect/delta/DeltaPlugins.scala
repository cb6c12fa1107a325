package org.apache.spark.sql.connect.delta

import scala.jdk.CollectionConverters._

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.connect.{DeltaicCommandPlugin, DeltaicRelationPlugin}

/** Deltaic's plugin, under the name that delta-spark's documentation sets. */
class DeltaRelationPlugin extends DeltaicRelationPlugin {
  SoleClass.require(
    getClass,
    "spark.connect.extensions.relation.classes",
    classOf[DeltaicRelationPlugin]
  )
}

/** Deltaic's plugin, under the name that delta-spark's documentation sets. */
class DeltaCommandPlugin extends DeltaicCommandPlugin {
  SoleClass.require(
    getClass,
    "spark.connect.extensions.command.classes",
    classOf[DeltaicCommandPlugin]
  )
}

private object SoleClass {

  /** Refuses to be one of several classes of the name: that of delta-spark would commit without Deltaic's checks. */
  def require(found: Class[_], setting: String, plugin: Class[_]): Unit = {
    val file = s"${found.getName.replace('.', '/')}.class"
    val jars = found.getClassLoader.getResources(file).asScala.map(_.toString.stripSuffix(file))
      .toSet
    if (jars.size > 1)
      throw DeltaicException(
        "DELTAIC_CONNECT_PLUGIN_CONFLICT",
        Map(
          "class" -> found.getName,
          "jars" -> jars.toSeq.sorted.mkString(", "),
          "setting" -> setting,
          "plugin" -> plugin.getName
        )
      )
  }
}
