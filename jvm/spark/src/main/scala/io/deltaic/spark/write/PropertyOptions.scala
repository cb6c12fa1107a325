package io.deltaic.spark.write

import java.util.Locale

import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap

/** Options of a DataFrame's writer that name table properties, for the table that it creates. */
private[spark] object PropertyOptions {

  /** The spelling of properties matters, so they keep their case. */
  def of(options: Map[String, String]): Map[String, String] = {
    val asSpelled = options match {
      case ignoringCase: CaseInsensitiveMap[String @unchecked] => ignoringCase.originalMap
      case plain => plain
    }
    asSpelled.filter { case (key, _) => isProperty(key) }
  }

  def isProperty(option: String): Boolean = option.toLowerCase(Locale.ROOT).startsWith("delta.")
}
