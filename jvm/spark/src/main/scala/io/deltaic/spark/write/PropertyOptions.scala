package io.deltaic.spark.write

import java.util.Locale

import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap

/** Options of a DataFrame writer that are table properties of the table that it creates. */
private[spark] object PropertyOptions {

  /** The names keep their case: that of a property of the user's own is significant. */
  def of(options: Map[String, String]): Map[String, String] = {
    val asSpelled = options match {
      case ignoringCase: CaseInsensitiveMap[String @unchecked] => ignoringCase.originalMap
      case plain => plain
    }
    asSpelled.filter { case (key, value) => value != null && isProperty(key) }
  }

  /** Whether it is of the namespace of Delta, or of that of Deltaic, whose properties other engines do not know. */
  def isProperty(option: String): Boolean = {
    val name = option.toLowerCase(Locale.ROOT)
    name.startsWith("delta.") || name.startsWith("deltaic.")
  }
}
