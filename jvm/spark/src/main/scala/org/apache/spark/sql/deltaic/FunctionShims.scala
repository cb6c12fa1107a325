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

  /** A function whose name is not that of one that is built into Spark: of the session, an extension or a catalog. */
  def ofSession(spark: SparkSession, sql: String): Option[String] =
    spark.sessionState.sqlParser.parseExpression(sql).collectFirst {
      case call: UnresolvedFunction if !isBuiltIn(call.nameParts) => call.nameParts.mkString(".")
    }

  /** A function of a user, which may have the name of one that is built in, or a variable of the session. */
  def ofSession(resolved: Expression): Option[String] = resolved.collectFirst {
    case function: UserDefinedExpression => function.name
    case variable: VariableReference => variable.sql
  }

  private def isBuiltIn(nameParts: Seq[String]): Boolean =
    nameParts.map(_.toLowerCase(Locale.ROOT)) match {
      case Seq(name) => isBuiltIn(name)
      case Seq("builtin", name) => isBuiltIn(name)
      case Seq("system", "builtin", name) => isBuiltIn(name)
      case _ => false
    }

  private def isBuiltIn(name: String): Boolean =
    FunctionRegistry.builtin.functionExists(FunctionRegistry.builtinFunctionIdentifier(name))
}
