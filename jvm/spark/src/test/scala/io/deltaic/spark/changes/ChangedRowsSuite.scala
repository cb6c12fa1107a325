package io.deltaic.spark.changes

import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.PatientSuite
import io.deltaic.dv.{DeletionVector, DeletionVectorStore}
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}
import io.deltaic.spark.scan.deletionvectors.DeletionVectorSource
import io.deltaic.spark.util.LocalSpark

/** Compares the rows that a probe selects with plain sets of the same rows. */
class ChangedRowsSuite extends PatientSuite with LocalSpark {

  private val file = AddFile("a.parquet", Map.empty, 1L, 0L, dataChange = true)

  private def source = ChangedRows(
    DeletionVectorSource("/no/such/table")(
      spark.sparkContext.broadcast(new SerializableConfiguration(new Configuration()))
    )
  )

  private def vector(rows: Set[Long]): DeletionVectorDescriptor =
    new DeletionVectorStore(new Configuration()).inline(DeletionVector.of(rows.toSeq.sorted: _*))

  private def changed(constant: UTF8String, rows: Seq[Long]): Seq[Long] = {
    val probe = source.newProbe()
    rows.filterNot(probe.isDeleted(constant, _))
  }

  test("selected rows are those of the sets, wherever a split begins") {
    val random = new Random(7)
    (1 to 60).foreach { _ =>
      val limit = 1 + random.nextInt(300)
      def some(share: Double): Set[Long] =
        (0L until limit.toLong).filter(_ => random.nextDouble() < share).toSet
      val marked = some(random.nextDouble())
      val except = if (random.nextBoolean()) some(random.nextDouble()) else marked
      val all = random.nextInt(limit).toLong until limit.toLong
      val cases = Seq[(RowSelection, Long => Boolean)](
        RowSelection.AllBut(Some(vector(marked))) -> (!marked(_)),
        RowSelection.Only(vector(marked), None) -> (marked(_)),
        RowSelection.Only(vector(marked), Some(vector(except))) -> (r => marked(r) && !except(r))
      )
      cases.foreach { case (selection, expected) =>
        assertEquals(changed(ChangedRows.encode(file, selection), all), all.filter(expected))
      }
    }
  }

  test("a file is empty when no row of one vector is missing from the other") {
    val (few, more) = (vector(Set(3L, 70000L)), vector(Set(1L, 3L, 70000L)))
    def isEmpty(rows: RowSelection): Boolean = source.isEmpty(ChangedRows.encode(file, rows))
    assert(isEmpty(RowSelection.Only(few, Some(more))))
    assert(!isEmpty(RowSelection.Only(more, Some(few))))
    assert(!isEmpty(RowSelection.Only(few, None)))
    assert(!isEmpty(RowSelection.AllBut(Some(few))))
    assert(!isEmpty(RowSelection.AllBut(None)))
  }
}
