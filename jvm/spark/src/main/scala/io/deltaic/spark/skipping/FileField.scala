package io.deltaic.spark.skipping

import org.apache.spark.sql.types.{DataType, LongType}

import io.deltaic.spark.schema.{LeafColumn, PartitionColumn}

/** A field of a file's partition values or statistics that a skipping predicate reads. */
sealed private[skipping] trait FileField {
  def dataType: DataType
  def name: String
}

private[skipping] object FileField {
  case object NumRecords extends FileField {
    override def dataType: DataType = LongType
    override def name: String = "numRecords"
  }
  final case class NullCount(leaf: LeafColumn) extends FileField {
    override def dataType: DataType = LongType
    override def name: String = s"nullCount.${leaf.statsPath.mkString(".")}"
  }
  final case class Min(leaf: LeafColumn) extends FileField {
    override def dataType: DataType = leaf.dataType
    override def name: String = s"min.${leaf.statsPath.mkString(".")}"
  }
  final case class Max(leaf: LeafColumn) extends FileField {
    override def dataType: DataType = leaf.dataType
    override def name: String = s"max.${leaf.statsPath.mkString(".")}"
  }
  final case class Partition(column: PartitionColumn) extends FileField {
    override def dataType: DataType = column.dataType
    override def name: String = column.logName
  }
}
