package io.deltaic.spark.catalog.definition

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.schema.TableConditions

/** Properties of a new table that define CHECK constraints: `delta.constraints.name` = condition. */
private[spark] object ConstraintProperties {

  /**
   * The constraints of a statement by name, including those in its properties.
   *
   * @param declared the constraints that are not in the properties
   */
  def joined(
      table: String,
      declared: Map[String, String],
      properties: Map[String, String]
  ): Map[String, String] =
    properties.foldLeft(declared) { case (constraints, (property, condition)) =>
      val name = property.drop(TableConditions.ConstraintPrefix.length)
      constraints.find(_._1.equalsIgnoreCase(name)).foreach { case (other, expression) =>
        throw DeltaicException(
          "DELTAIC_CONSTRAINT_EXISTS",
          Map("table" -> table, "constraint" -> other, "expression" -> expression)
        )
      }
      constraints + (name -> condition)
    }
}
