package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.Assignment
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.StoreAssignmentPolicy
import org.apache.spark.sql.types._

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/**
 * Casts values to the types of a table's columns, by `spark.sql.storeAssignmentPolicy`.
 *
 *   - ANSI: castable types are cast, and a value that does not fit is an error.
 *   - LEGACY: the same casts, and a value that does not fit becomes null or is truncated.
 *   - STRICT: only types are cast all of whose values fit.
 *
 * This is delta-spark's behavior. Spark itself casts less, refuses LEGACY, and its errors do not name the table.
 *
 * Only types change here: a struct keeps the order of its fields, and Spark then reorders them as in the
 * table.
 *
 * @param table its path, for errors
 * @param mayLackFields whether structs may have fewer fields than the column
 * @param byName whether fields of structs are matched by name, or by position
 * @param exactly whether a value that a cast would truncate is an error under ANSI
 */
private[sql] final class AssignedValues(
    table: String,
    conf: SQLConf,
    mayLackFields: Boolean,
    byName: Boolean = true,
    exactly: Boolean = false
) {
  private val policy = conf.storeAssignmentPolicy

  /** An assignment of UPDATE or MERGE with its value cast. */
  def fitted(set: Assignment): Assignment =
    set.copy(value = fitted(set.value, set.key.dataType, AssignedValues.pathOf(set.key)))

  /**
   * @param column the type of the column, or of the field in it
   * @param path its name, for errors
   * @throws DeltaicThrowable if values of that type are not cast to the column's
   */
  def fitted(value: Expression, column: DataType, path: Seq[String]): Expression = {
    val wanted = retyped(value.dataType, column, path)
    if (wanted == value.dataType) value
    else if (isCastable(value.dataType, wanted)) cast(value, wanted, path)
    else throw notCastable(path, value.dataType, column)
  }

  /** The type that a value of one type has in a column of another. */
  def retyped(from: DataType, column: DataType): DataType = retyped(from, column, Nil)

  /** The field of a column that matches a value's field. */
  def fieldFor(field: StructField, place: Int, column: StructType): Option[StructField] =
    if (byName) column.find(_.name.equalsIgnoreCase(field.name)) else column.lift(place)

  private def cast(value: Expression, wanted: DataType, path: Seq[String]): Expression = {
    val zone = Some(conf.sessionLocalTimeZone)
    policy match {
      case StoreAssignmentPolicy.LEGACY => Cast(value, wanted, zone, EvalMode.LEGACY)
      case _ =>
        val stored =
          if (isExact(value.dataType, wanted))
            ExactValue(value, wanted, zone, table, path.mkString("."))
          else Cast(value, wanted, zone, EvalMode.ANSI)
        if (Cast.canUpCast(value.dataType, wanted)) stored
        else StoredValue(stored, table, path.mkString("."))
    }
  }

  /** Whether each value is checked for truncation by the cast. */
  def isExact(from: DataType, to: DataType): Boolean =
    exactly && policy == StoreAssignmentPolicy.ANSI && ExactValue.mayCut(from, to)

  /** The target type of a value: its own structure, with the column's types. */
  private def retyped(from: DataType, to: DataType, path: Seq[String]): DataType =
    (from, to) match {
      case (struct: StructType, column: StructType) => retypedStruct(struct, column, path)
      case (ArrayType(element, containsNull), ArrayType(wanted, _)) =>
        val changed = retyped(element, wanted, path :+ "element")
        ArrayType(changed, containsNull || mayGetNull(element, changed))
      case (MapType(key, value, containsNull), MapType(wantedKey, wantedValue, _)) =>
        val changed = retyped(value, wantedValue, path :+ "value")
        MapType(
          retyped(key, wantedKey, path :+ "key"),
          changed,
          containsNull || mayGetNull(value, changed)
        )
      case (_: StringType, _: StringType) => from // lengths and collations are Spark's
      case (_: UserDefinedType[_], _) | (_, _: UserDefinedType[_]) => from
      case _ if from == to => from
      case _ if isCastable(from, to) => to
      case _ => throw notCastable(path, from, to)
    }

  private def retypedStruct(
      struct: StructType,
      column: StructType,
      path: Seq[String]
  ): StructType = {
    val fields = struct.zipWithIndex.map { case (field, place) =>
      val wanted = fieldFor(field, place, column).getOrElse {
        throw refused(path, s"it has no field ${field.name}, but ${named(column)}")
      }
      val changed = retyped(field.dataType, wanted.dataType, path :+ wanted.name)
      field.copy(
        dataType = changed,
        nullable = field.nullable || mayGetNull(field.dataType, changed)
      )
    }
    val lacking = column.zipWithIndex.collect {
      case (f, place) if fieldFor(f, place, struct).isEmpty => f
    }
    if (lacking.nonEmpty && !mayLackFields)
      throw refused(path, s"the value does not say what ${named(lacking)} is to be")
    StructType(fields)
  }

  private def mayGetNull(from: DataType, to: DataType): Boolean =
    from != to && (from == NullType || Cast.forceNullable(from, to))

  private def isCastable(from: DataType, to: DataType): Boolean = policy match {
    case StoreAssignmentPolicy.LEGACY => Cast.canCast(from, to)
    case StoreAssignmentPolicy.STRICT => Cast.canUpCast(from, to)
    case _ => Cast.canAnsiCast(from, to)
  }

  private def notCastable(path: Seq[String], from: DataType, to: DataType): DeltaicThrowable = {
    val setting = s"${SQLConf.STORE_ASSIGNMENT_POLICY.key} is $policy"
    refused(path, s"${from.sql} is not cast to ${to.sql} ($setting)")
  }

  private def named(fields: Seq[StructField]): String = fields.map(_.name).mkString(", ")

  private def refused(path: Seq[String], reason: String): DeltaicThrowable =
    AssignedValues.refused(table, path.mkString("."), reason)
}

private[sql] object AssignedValues {

  /** The path of the assigned column or field. */
  def pathOf(key: Expression): Seq[String] = key match {
    case column: Attribute => Seq(column.name)
    case field: GetStructField => pathOf(field.child) :+ field.extractFieldName
    case other => Seq(other.sql)
  }

  def refused(
      table: String,
      column: String,
      reason: String,
      cause: Throwable = null
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_ASSIGNMENT_REFUSED",
    Map("table" -> table, "column" -> column, "reason" -> reason),
    cause
  )
}
