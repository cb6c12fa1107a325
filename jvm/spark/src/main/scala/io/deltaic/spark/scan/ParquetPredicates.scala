package io.deltaic.spark.scan

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, GetStructField}
import org.apache.spark.sql.types.{DoubleType, FloatType, StructField, StructType}

import io.deltaic.spark.schema.{ColumnMapping, SkippingSchema, TableSchema, TypeChange}

/**
 * The filters by which the Parquet reader may skip row groups, under physical names. Filters that
 * are not pushed down are still evaluated on every row.
 */
private[spark] object ParquetPredicates {

  /**
   * Pushes down filters on data columns whose type is the same in every file: the reader builds its
   * predicates for the type of the file, in which a constant of a wider type may have no or another
   * value. Under column mapping mode `id` no filters are pushed down, because the reader finds the
   * columns of predicates by name, and names in files are arbitrary there.
   */
  def of(filters: Seq[Expression], schema: TableSchema): Seq[Expression] =
    if (schema.mapping == ColumnMapping.ById) Nil
    else
      filters
        .filterNot(_.references.exists(a => schema.isPartition(a.name)))
        .filterNot(_.exists(isWidened(_, schema)))
        .filterNot(_.exists(isFloating))
        .map(inFileNames(_, schema))

  /**
   * Zero has two encodings, and the reader looks for only one of them in dictionaries and bloom
   * filters. Arrow's writers leave NaN, which Spark sorts above all values, out of the bounds of a
   * row group.
   */
  private def isFloating(expression: Expression): Boolean = expression.dataType match {
    case FloatType | DoubleType => true
    case _ => false
  }

  private def inFileNames(filter: Expression, schema: TableSchema): Expression =
    if (schema.mapping == ColumnMapping.NoMapping) filter
    else
      filter.transform { case a: AttributeReference =>
        val column = schema.inFiles(StructField(a.name, a.dataType))
        // A nested field takes its name from the type of what it is a field of.
        a.copy(name = column.name, dataType = column.dataType)(a.exprId, a.qualifier)
      }

  private def isWidened(column: Expression, schema: TableSchema): Boolean = column match {
    case _: AttributeReference | _: GetStructField =>
      field(column, schema.stored).exists(TypeChange.of(_).nonEmpty)
    case _ => false
  }

  private def field(column: Expression, schema: StructType): Option[StructField] = column match {
    case a: AttributeReference => SkippingSchema.find(schema, a.name)
    case f: GetStructField =>
      field(f.child, schema).map(_.dataType).collect { case struct: StructType =>
        SkippingSchema.find(struct, f.extractFieldName)
      }.flatten
    case _ => None
  }
}
