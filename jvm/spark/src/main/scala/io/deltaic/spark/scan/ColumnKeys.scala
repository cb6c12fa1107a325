package io.deltaic.spark.scan

/** What the metadata of a table's columns says of them besides column mapping and type changes. */
private[spark] object ColumnKeys {

  /** Protocol § Default Columns; the second is the value of rows that are older than the column. */
  val CurrentDefault = "CURRENT_DEFAULT"
  val ExistsDefault = "EXISTS_DEFAULT"

  /** Protocol § Column Invariants. */
  val Invariant = "delta.invariants"

  /** Protocol § Generated Columns. */
  val GenerationExpression = "delta.generationExpression"

  /** Protocol § Identity Columns. */
  val IdentityStart = "delta.identity.start"
  val IdentityStep = "delta.identity.step"
  val IdentityHighWaterMark = "delta.identity.highWaterMark"
  val IdentityAllowExplicitInsert = "delta.identity.allowExplicitInsert"
}
