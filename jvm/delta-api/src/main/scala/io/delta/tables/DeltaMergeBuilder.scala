package io.delta.tables

import java.util.{Map => JMap}

import scala.collection.Map
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.{Column, DataFrame, classic}

import io.deltaic.spark.{MergeStatement, RowLevelStatements, SessionTable}

/**
 * A MERGE; [[DeltaTable.merge]] returns one. For each row, the first clause applies whose condition is true. Each
 * method returns a builder with one more clause, and leaves this one unchanged.
 */
class DeltaMergeBuilder private (
    targetTable: DeltaTable,
    source: DataFrame,
    onCondition: Column,
    clauses: Seq[MergeStatement => Unit],
    evolvesSchema: Boolean
) {
  private[tables] def this(targetTable: DeltaTable, source: DataFrame, onCondition: Column) =
    this(targetTable, source, onCondition, Nil, evolvesSchema = false)

  /** A clause for rows of the table that match a row of the source. */
  def whenMatched(): DeltaMergeMatchedActionBuilder =
    new DeltaMergeMatchedActionBuilder(this, None)

  /** A clause for rows of the table that match a row of the source, if the condition is true. */
  def whenMatched(condition: String): DeltaMergeMatchedActionBuilder = whenMatched(expr(condition))

  /** A clause for rows of the table that match a row of the source, if the condition is true. */
  def whenMatched(condition: Column): DeltaMergeMatchedActionBuilder =
    new DeltaMergeMatchedActionBuilder(this, Some(condition))

  /** A clause for rows of the source that match no row of the table. */
  def whenNotMatched(): DeltaMergeNotMatchedActionBuilder =
    new DeltaMergeNotMatchedActionBuilder(this, None)

  /** A clause for rows of the source that match no row of the table, if the condition is true. */
  def whenNotMatched(condition: String): DeltaMergeNotMatchedActionBuilder =
    whenNotMatched(expr(condition))

  /** A clause for rows of the source that match no row of the table, if the condition is true. */
  def whenNotMatched(condition: Column): DeltaMergeNotMatchedActionBuilder =
    new DeltaMergeNotMatchedActionBuilder(this, Some(condition))

  /** A clause for rows of the table that match no row of the source. */
  def whenNotMatchedBySource(): DeltaMergeNotMatchedBySourceActionBuilder =
    new DeltaMergeNotMatchedBySourceActionBuilder(this, None)

  /** A clause for rows of the table that match no row of the source, if the condition is true. */
  def whenNotMatchedBySource(condition: String): DeltaMergeNotMatchedBySourceActionBuilder =
    whenNotMatchedBySource(expr(condition))

  /** A clause for rows of the table that match no row of the source, if the condition is true. */
  def whenNotMatchedBySource(condition: Column): DeltaMergeNotMatchedBySourceActionBuilder =
    new DeltaMergeNotMatchedBySourceActionBuilder(this, Some(condition))

  /** Adds columns of the source that the table does not have to the table. */
  def withSchemaEvolution(): DeltaMergeBuilder =
    new DeltaMergeBuilder(targetTable, source, onCondition, clauses, evolvesSchema = true)

  /** Runs it, and returns the numbers of rows that it changed. */
  def execute(): DataFrame = {
    SessionTable.classicSession(source.sparkSession, "DeltaTable.merge")
    val statement = RowLevelStatements.merge(
      targetTable.target,
      source.asInstanceOf[classic.DataFrame],
      onCondition
    )
    clauses.foreach(_(statement))
    if (evolvesSchema) statement.withSchemaEvolution()
    statement.run()
  }

  private[tables] def withClause(add: MergeStatement => Unit): DeltaMergeBuilder =
    new DeltaMergeBuilder(targetTable, source, onCondition, clauses :+ add, evolvesSchema)
}

/** An action for rows of the table that match a row of the source. */
class DeltaMergeMatchedActionBuilder private[tables] (
    mergeBuilder: DeltaMergeBuilder,
    matchCondition: Option[Column]
) {

  /** Sets columns; without columns and without a condition, it adds no clause. */
  def update(set: Map[String, Column]): DeltaMergeBuilder =
    if (set.isEmpty && matchCondition.isEmpty) mergeBuilder
    else {
      val (columns, values) = Assignments.lists(set)
      mergeBuilder.withClause(_.matchedUpdate(matchCondition.orNull, columns, values))
    }

  /** Sets columns to the values of SQL expressions. */
  def updateExpr(set: Map[String, String]): DeltaMergeBuilder = update(Assignments.parsed(set))

  /** Sets columns. */
  def update(set: JMap[String, Column]): DeltaMergeBuilder = update(set.asScala)

  /** Sets columns to the values of SQL expressions. */
  def updateExpr(set: JMap[String, String]): DeltaMergeBuilder = updateExpr(set.asScala)

  /** Sets each column to the source's column of the same name. */
  def updateAll(): DeltaMergeBuilder =
    mergeBuilder.withClause(_.matchedUpdateAll(matchCondition.orNull))

  /** Deletes the row. */
  def delete(): DeltaMergeBuilder = mergeBuilder.withClause(_.matchedDelete(matchCondition.orNull))
}

/** An action for rows of the source that match no row of the table. */
class DeltaMergeNotMatchedActionBuilder private[tables] (
    mergeBuilder: DeltaMergeBuilder,
    notMatchCondition: Option[Column]
) {

  /** Inserts a row with these values. */
  def insert(values: Map[String, Column]): DeltaMergeBuilder = {
    val (columns, expressions) = Assignments.lists(values)
    mergeBuilder.withClause(_.notMatchedInsert(notMatchCondition.orNull, columns, expressions))
  }

  /** Inserts a row with the values of SQL expressions. */
  def insertExpr(values: Map[String, String]): DeltaMergeBuilder =
    insert(Assignments.parsed(values))

  /** Inserts a row with these values. */
  def insert(values: JMap[String, Column]): DeltaMergeBuilder = insert(values.asScala)

  /** Inserts a row with the values of SQL expressions. */
  def insertExpr(values: JMap[String, String]): DeltaMergeBuilder = insertExpr(values.asScala)

  /** Inserts the row of the source. */
  def insertAll(): DeltaMergeBuilder =
    mergeBuilder.withClause(_.notMatchedInsertAll(notMatchCondition.orNull))
}

/** An action for rows of the table that match no row of the source. */
class DeltaMergeNotMatchedBySourceActionBuilder private[tables] (
    mergeBuilder: DeltaMergeBuilder,
    notMatchBySourceCondition: Option[Column]
) {

  /** Sets columns; without columns and without a condition, it adds no clause. */
  def update(set: Map[String, Column]): DeltaMergeBuilder =
    if (set.isEmpty && notMatchBySourceCondition.isEmpty) mergeBuilder
    else {
      val (columns, values) = Assignments.lists(set)
      mergeBuilder.withClause(
        _.notMatchedBySourceUpdate(notMatchBySourceCondition.orNull, columns, values)
      )
    }

  /** Sets columns to the values of SQL expressions. */
  def updateExpr(set: Map[String, String]): DeltaMergeBuilder = update(Assignments.parsed(set))

  /** Sets columns. */
  def update(set: JMap[String, Column]): DeltaMergeBuilder = update(set.asScala)

  /** Sets columns to the values of SQL expressions. */
  def updateExpr(set: JMap[String, String]): DeltaMergeBuilder = updateExpr(set.asScala)

  /** Deletes the row. */
  def delete(): DeltaMergeBuilder =
    mergeBuilder.withClause(_.notMatchedBySourceDelete(notMatchBySourceCondition.orNull))
}
