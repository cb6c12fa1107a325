package io.deltaic.spark.catalog

import java.util.Locale

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.write.TableConditions

/** Properties of a new table that state its CHECK constraints: `delta.constraints.name` = condition. */
private[spark] object ConstraintProperties {

  def isOne(property: String): Boolean =
    property.toLowerCase(Locale.ROOT).startsWith(TableConditions.ConstraintPrefix)

  /**
   * The constraints of a statement by their names, those that its properties state among them.
   *
   * @param stated those that it states as constraints
   */
  def joined(
      table: String,
      stated: Map[String, String],
      properties: Map[String, String]
  ): Map[String, String] =
    properties.foldLeft(stated) { case (known, (property, condition)) =>
      val name = property.drop(TableConditions.ConstraintPrefix.length)
      known.find(_._1.equalsIgnoreCase(name)).foreach { case (other, expression) =>
        throw DeltaicException(
          "DELTAIC_CONSTRAINT_EXISTS",
          Map("table" -> table, "constraint" -> other, "expression" -> expression)
        )
      }
      known + (name -> condition)
    }
}
