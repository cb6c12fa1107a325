package org.apache.spark.sql.deltaic

import java.util.Locale

import org.apache.spark.sql.catalyst.analysis.{FunctionRegistry, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions.{
  Expression,
  UserDefinedExpression,
  VariableReference
}
import org.apache.spark.sql.classic.SparkSession

/** What an expression takes from the session in which it is analysed, and other sessions do not have. */
object FunctionShims {

  /**
   * Says of a function that its name is not that of one that is built into Spark: it is of the session, which may have
   * got it from an extension, or of a catalog.
   */
  def ofSession(spark: SparkSession, sql: String): Option[String] =
    spark.sessionState.sqlParser.parseExpression(sql).collectFirst {
      case call: UnresolvedFunction if !isBuiltIn(call.nameParts) =>
        val owner = if (isOfSession(call.nameParts)) "the session" else "a catalog"
        s"${call.nameParts.mkString(".")} is a function of $owner"
    }

  /** Says so of a function of a user, which may have the name of one that is built in, or of a variable. */
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
