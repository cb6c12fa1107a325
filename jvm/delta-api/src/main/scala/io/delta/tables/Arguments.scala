package io.delta.tables

import java.util.{List => JList}

import scala.collection.Map
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.{Column, SparkSession}

import io.deltaic.protocol.DeltaicException

/** New values of columns. */
private[tables] object Assignments {

  def parsed(set: Map[String, String]): Map[String, Column] =
    set.toSeq.map { case (column, value) => column -> expr(value) }.toMap

  /** Names and values, as [[io.deltaic.spark.RowLevelStatements]] has them. */
  def lists(set: Map[String, Column]): (JList[String], JList[Column]) = {
    val (columns, values) = set.toSeq.unzip
    (columns.asJava, values.asJava)
  }
}

private[tables] object BuilderError {

  def apply(what: String, reason: String): Throwable =
    DeltaicException(
      "DELTAIC_TABLE_BUILDER_INVALID",
      Predef.Map("what" -> what, "reason" -> reason)
    )
}

private[tables] object ActiveSession {

  def apply(): SparkSession =
    SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession).getOrElse {
      throw new IllegalArgumentException(
        "Could not find active SparkSession: pass the session, or create one first."
      )
    }
}
