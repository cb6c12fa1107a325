package io.deltaic.spark.stream

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types._

import io.deltaic.spark.schema.{PhysicalSchema, TypeChange}
import io.deltaic.spark.util.SessionSettings

/**
 * A kind of change of a tracked schema that the user must allow, since what a stream writes to may have to change, too.
 *
 * @param option of the read that allows it; so does the setting of the same name
 */
private[stream] sealed abstract class SchemaChangeKind(
    val option: String,
    val others: Seq[String]
) {

  /** The settings that allow it. */
  def settings: Seq[String] = (option +: others).map(name => s"streaming.$name")
}

private[stream] object SchemaChangeKind {
  val Always = "always"

  private val renameAndDrop = Seq("allowSourceColumnRenameAndDrop")

  case object Rename extends SchemaChangeKind("allowSourceColumnRename", renameAndDrop)
  case object Drop extends SchemaChangeKind("allowSourceColumnDrop", renameAndDrop)
  case object TypeWidening extends SchemaChangeKind("allowSourceColumnTypeChange", Nil)

  val all: Seq[SchemaChangeKind] = Seq(Rename, Drop, TypeWidening)
}

/**
 * What has changed between two schemas of a table, other than added columns. Columns are identified by their physical
 * names: one that was dropped and added again is another one (Protocol § Column Mapping).
 *
 * @param kinds of each change, with a description
 * @param incompatible columns whose type has changed to one that does not have all values of the older type
 */
private[stream] final case class SchemaChanges(
    kinds: Seq[(SchemaChangeKind, String)],
    incompatible: Seq[String]
) {

  /**
   * The kinds that neither an option nor a setting of the session allows.
   *
   * @param version of the newer schema
   * @param checkpointId identifies the source in the names of settings
   */
  def notAllowed(
      spark: SparkSession,
      options: StreamOptions,
      version: Long,
      checkpointId: String
  ): Seq[SchemaChangeKind] = {
    val values = Set(SchemaChangeKind.Always, version.toString)
    def isSet(name: String, values: Set[String]) =
      SessionSettings.get(spark, name).exists(value => values(value.trim.toLowerCase))
    kinds.map(_._1).distinct.filterNot { kind =>
      options.allowedChanges.get(kind).exists(values) || kind.settings.exists { setting =>
        isSet(setting, Set(SchemaChangeKind.Always)) || isSet(s"$setting.$checkpointId", values)
      }
    }
  }
}

private[stream] object SchemaChanges {

  def between(before: StructType, after: StructType): SchemaChanges = {
    val found = changes(before, after, Nil)
    SchemaChanges(
      found.collect { case Left(change) => change },
      found.collect { case Right(column) => column }
    )
  }

  private type Change = Either[(SchemaChangeKind, String), String]

  private def changes(before: DataType, after: DataType, path: Seq[String]): Seq[Change] =
    (before, after) match {
      case (before: StructType, after: StructType) => ofFields(before, after, path)
      case (before: ArrayType, after: ArrayType) =>
        changes(before.elementType, after.elementType, path :+ "element")
      case (before: MapType, after: MapType) =>
        changes(before.keyType, after.keyType, path :+ "key") ++
          changes(before.valueType, after.valueType, path :+ "value")
      case (before, after) if before == after => Nil
      case (before, after) =>
        val change = s"${path.mkString(".")} from ${before.sql} to ${after.sql}"
        if (TypeChange.widens(before, after) || TypeChange.isStoredAlike(before, after))
          Seq(Left(SchemaChangeKind.TypeWidening -> s"type of column $change"))
        else Seq(Right(change))
    }

  private def ofFields(
      before: StructType,
      after: StructType,
      path: Seq[String]
  ): Seq[Change] = {
    val byName = after.fields.map(field => physicalName(field) -> field).toMap
    before.fields.toSeq.flatMap { field =>
      val here = path :+ field.name
      byName.get(physicalName(field)) match {
        case None =>
          Seq(Left(SchemaChangeKind.Drop -> s"column ${here.mkString(".")} dropped"))
        case Some(now) =>
          val renamed = Option.when(now.name != field.name)(
            Left(SchemaChangeKind.Rename -> s"column ${here.mkString(".")} renamed to ${now.name}")
          )
          renamed.toSeq ++ changes(field.dataType, now.dataType, here)
      }
    }
  }

  private def physicalName(field: StructField): String =
    PhysicalSchema.nameOf(field, columnMapping = true)
}
