package io.deltaic.spark.optimize

import scala.util.Random

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Ascending,
  AttributeReference,
  BoundReference,
  Expression,
  Literal,
  SortOrder,
  UnsafeProjection,
  UnsafeRow
}
import org.apache.spark.sql.deltaic.{JobInternals, ShuffleInternals}
import org.apache.spark.sql.types.{IntegerType, LongType, StructType}

import io.deltaic.spark.curve.{GroupOrder, RowOrder}
import io.deltaic.spark.write.WriteTransaction

/**
 * A group of files whose rows are ordered.
 *
 * @param samples what the tasks read that sample its rows
 * @param inputs what the tasks read that shuffle its rows
 * @param rows about how many rows it has
 * @param numParts how many parts its rows are written in
 */
private[optimize] final case class OrderedGroup(
    samples: Seq[RewritePart],
    inputs: Seq[RewritePart],
    rows: Long,
    numParts: Int
)

/**
 * Writes the rows of groups of files in the order of a curve, in parts that follow each other on it. The columns
 * of the order are read once before, for a sample of their values.
 *
 * @param sampled reads the columns of the order alone; deleted rows may be among its rows
 * @param reader reads all columns
 * @param stored the columns of the new files, by their positions in the rows of `reader`
 * @param maxTasks how many tasks read, or write, at a time
 */
private[optimize] final class OrderedRewrite(
    transaction: WriteTransaction,
    order: RowOrder,
    sampled: PartReader,
    reader: PartReader,
    stored: Array[Int],
    maxTasks: Int
) {
  import OrderedRewrite._

  private val spark = transaction.spark
  private val spec = transaction.copySpec
  private val ties = order.ties(reader.columns)
  private val prefixes = order.prefixes(sampled.columns)

  /** @return the parts of all groups in their order, and what was written */
  def write(groups: IndexedSeq[OrderedGroup]): Seq[(RewritePart, WrittenPart)] =
    shuffles(groups).flatMap { together =>
      val firstParts = together.scanLeft(0)(_ + _.numParts)
      val samples = sample(together)
      val positions = prefixes.zipWithIndex.map { case (prefix, i) =>
        BoundReference(i, prefix.dataType, nullable = true)
      }
      val inputs = together.indices.flatMap { i =>
        val ofGroup = order.by(samples(i), positions, together(i).numParts, firstParts(i))
        together(i).inputs.map(OrderedInput(_, ofGroup))
      }
      val outputs = together.flatMap { group =>
        Seq.fill(group.numParts)(group.inputs.head.copy(splits = Nil))
      }
      outputs.zip(shuffled(inputs, outputs))
    }

  private def sample(groups: Seq[OrderedGroup]): IndexedSeq[IndexedSeq[InternalRow]] = {
    val wanted = SampledRows.max(SampledRowsOfPart * groups.map(_.numParts.toLong).sum)
    val step = groups.map(_.rows).sum / wanted
    val parts = groups.zipWithIndex.flatMap { case (group, i) =>
      val stepOfGroup = step.min(group.rows / SampledRowsOfGroup).max(1L)
      group.samples.map(SampledPart(i, _, stepOfGroup))
    }
    val description = transaction.jobs("sample the columns of the order")
    val found = JobInternals
      .inExecutors(spark, description, parts, maxTasks)(rowsOfSample(sampled, prefixes))
      .groupMap(_._1)(_._2)
    groups.indices.map(found.getOrElse(_, Nil).toIndexedSeq)
  }

  private def shuffled(
      inputs: IndexedSeq[OrderedInput],
      outputs: IndexedSeq[RewritePart]
  ): Seq[WrittenPart] = {
    val rows = StructType(stored.map(reader.columns(_)))
    val tiesInRow = ties.map(c => AttributeReference("tie", c.dataType)())
    val position = AttributeReference("position", LongType, nullable = false)()
    val part = AttributeReference("part", IntegerType, nullable = false)()
    val output = rows.map(f => AttributeReference(f.name, f.dataType)()) ++ tiesInRow :+
      position :+ part
    val columns = spec.schema.indices.map(i => spec.fileOrdinals.indexOf(i)).toArray
    val writer = new OrderedPartWriter(spec, rows, columns, outputs.map(_.partitionValues))
    val numFiles = inputs.iterator.flatMap(_.part.splits).map(_.split.filePath).toSet.size
    JobInternals.ofPartitions(
      spark,
      transaction.jobs(s"order the rows of $numFiles files"),
      inTasks(
        ShuffleInternals.sorted(
          unordered(inputs),
          output,
          part,
          outputs.size,
          (position +: tiesInRow).map(SortOrder(_, Ascending))
        ).mapPartitionsWithIndex((i, rows) => Iterator.single(i -> writer.write(i, rows))),
        maxTasks
      )
    )((_, written) => written).sortBy(_._1).map(_._2)
  }

  /** The rows with their ties, positions and parts. */
  private def unordered(inputs: IndexedSeq[OrderedInput]): RDD[UnsafeRow] =
    rowsOf(
      spark.sparkContext.parallelize(inputs, inputs.size.min(maxTasks)),
      reader,
      stored.toSeq.map(i => BoundReference(i, reader.columns(i).dataType, nullable = true)) ++ ties
    )
}

private object OrderedRewrite {

  /** So many rows of a sample give each of a thousand ranges a boundary that is off by a few percent at most. */
  private val SampledRows = 1L << 16
  private val SampledRowsOfPart = 128L
  private val SampledRowsOfGroup = 1024L

  /** Groups are shuffled together up to this number of parts. */
  private val MaxPartsOfShuffle = 1000

  private final case class SampledPart(group: Int, part: RewritePart, step: Long)

  private final case class OrderedInput(part: RewritePart, order: GroupOrder)

  private def shuffles(groups: IndexedSeq[OrderedGroup]): Seq[IndexedSeq[OrderedGroup]] =
    groups.foldLeft(Vector.empty[Vector[OrderedGroup]]) { (before, group) =>
      before.lastOption match {
        case Some(last) if last.map(_.numParts).sum + group.numParts <= MaxPartsOfShuffle =>
          before.init :+ (last :+ group)
        case _ => before :+ Vector(group)
      }
    }

  /** Every `step`th row on average, by groups. */
  private def rowsOfSample(
      reader: PartReader,
      values: Seq[Expression]
  ): SampledPart => Iterator[(Int, InternalRow)] = { case SampledPart(group, part, step) =>
    val projection = UnsafeProjection.create(values)
    val random = new Random(TaskContext.getPartitionId())
    def gap(): Long = if (step <= 1) 1L else 1 + random.nextLong(2 * step - 1)
    var next = gap()
    reader.rows(part).filter { _ =>
      next -= 1
      val isNext = next <= 0
      if (isNext) next = gap()
      isNext
    }.map(row => group -> projection(row).copy())
  }

  /** The same in no more partitions, each of several one after the other. */
  private def inTasks[A](partitions: RDD[A], maxTasks: Int): RDD[A] =
    if (partitions.getNumPartitions <= maxTasks) partitions else partitions.coalesce(maxTasks)

  /** The rows with their columns, positions and parts. */
  private def rowsOf(
      inputs: RDD[OrderedInput],
      reader: PartReader,
      columns: Seq[Expression]
  ): RDD[UnsafeRow] = inputs.mapPartitions(_.flatMap { case OrderedInput(part, order) =>
    val position = columns.size
    var number = 0L
    reader.project(part, columns ++ Seq(order.position(reader.columns), Literal(0))).map { row =>
      row.setInt(position + 1, order.parts.part(row.getLong(position), number))
      // The same in each attempt of the task, since the rows of a split are always read in the same order.
      number += 1
      row
    }
  })
}
