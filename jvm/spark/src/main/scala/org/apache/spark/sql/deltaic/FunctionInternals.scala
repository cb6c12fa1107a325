package org.apache.spark.sql.deltaic

import java.util.Locale

import org.apache.spark.sql.catalyst.analysis.{FunctionRegistry, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions.{
  Expression,
  UserDefinedExpression,
  VariableReference
}
import org.apache.spark.sql.classic.SparkSession

/** Finds the parts of an expression that only exist in the session that analyzes it. */
object FunctionInternals {

  /**
   * Describes a function that is not built into Spark: it belongs to the session, which may have it
   * from an extension, or to a catalog.
   */
  def ofSession(spark: SparkSession, sql: String): Option[String] =
    spark.sessionState.sqlParser.parseExpression(sql).collectFirst {
      case call: UnresolvedFunction if !isBuiltIn(call.nameParts) =>
        val owner = if (isOfSession(call.nameParts)) "the session" else "a catalog"
        s"${call.nameParts.mkString(".")} is a function of $owner"
    }

  /** Describes a user-defined function, which may have the name of a built-in one, or a variable. */
  def ofSession(resolved: Expression): Option[String] = resolved.collectFirst {
    case function: UserDefinedExpression => s"${function.name} is a function of the session"
    case variable: VariableReference =>
      s"${variable.originalNameParts.mkString(".")} is a variable of the session"
  }

  private def isBuiltIn(nameParts: Seq[String]): Boolean =
    nameParts.map(_.toLowerCase(Locale.ROOT)) match {
      case Seq(name) => isBuiltIn(name)
      case Seq("builtin", name) => isBuiltIn(name)
      case Seq("system", "builtin", name) => isBuiltIn(name)
      case _ => false
    }

  private def isOfSession(nameParts: Seq[String]): Boolean =
    nameParts.init.map(_.toLowerCase(Locale.ROOT)) match {
      case Seq() | Seq("session") | Seq("system", "session") => true
      case _ => false
    }

  private def isBuiltIn(name: String): Boolean =
    FunctionRegistry.builtin.functionExists(FunctionRegistry.builtinFunctionIdentifier(name))
}
