package io.deltaic.replay

import munit.Assertions._
import org.apache.hadoop.conf.Configuration

import io.deltaic.protocol.AddFile

/** Reads a distributed snapshot in this process as executors do. */
object DistributedSnapshots {

  private val conf = new Configuration()

  def slicewise(snapshot: Snapshot): Seq[AddFile] = {
    val found = Seq.newBuilder[FileTable]
    snapshot.stored.foreach { stored =>
      stored.slices.foreach { slice =>
        sent(slice).files(conf)(found += _.without(sent(stored.superseded)))
      }
    }
    found += snapshot.filesInMemory
    val blocks = found.result().map(t => sent(t.block(Array.range(0, t.size))))
    val all = FileTable.of(snapshot.table, blocks)
    (0 until all.size).map(all.add)
  }

  /** A serialized copy, as in another process. */
  def sent[A](value: A): A = {
    val bytes = new java.io.ByteArrayOutputStream
    val out = new java.io.ObjectOutputStream(bytes)
    out.writeObject(value)
    out.close()
    val in = new java.io.ObjectInputStream(new java.io.ByteArrayInputStream(bytes.toByteArray))
    in.readObject().asInstanceOf[A]
  }

  /** @param local the same version, completely in memory */
  def assertSame(distributed: Snapshot, local: Snapshot): Unit = {
    val files = local.adds.toSet
    assert(!local.isDistributed)
    assertEquals(distributed.isDistributed, local.state.checkpointBytes > 0)
    assertEquals(distributed.adds.toSet, files)
    assertEquals(slicewise(distributed).toSet, files)
    assertEquals(slicewise(distributed).size, local.files.size)
    assertEquals(distributed.files.size, local.files.size)
    val now = System.currentTimeMillis
    def tombstones(s: Snapshot) = s.withoutExpiredTombstones(now).tombstones.toSet
    assertEquals(tombstones(distributed), tombstones(local))
    assertEquals(distributed.transactions, local.transactions)
    assertEquals(distributed.domains, local.domains)
    assertEquals(distributed.protocol, local.protocol)
    assertEquals(distributed.metadata, local.metadata)
    assertEquals(
      (distributed.version, distributed.timestampMs),
      (local.version, local.timestampMs)
    )
  }
}
