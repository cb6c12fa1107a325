package io.deltaic.spark.commit

import java.util.concurrent.atomic.AtomicReference
import java.util.concurrent.{CountDownLatch, TimeUnit}
import java.util.{EnumSet, Set => JSet}

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.storage.StorageLevel

import io.deltaic.spark.scan.files.{FollowsTable, LocalCommit}
import io.deltaic.spark.util.LocalSpark

class CachedPlansSuite extends munit.FunSuite with LocalSpark {

  /** @param planned called whenever a scan of it is planned */
  private class Followed(planned: () => Unit, refreshed: () => Unit)
      extends Table
      with SupportsRead
      with FollowsTable {
    override val location: Path = new Path("/followed")
    override def followsNewVersions: Boolean = true
    override def isCachedBefore(commit: LocalCommit): Boolean = false
    override def refreshedTo(commit: LocalCommit): Unit = refreshed()
    override def replaces(older: FollowsTable): Unit = ()
    override def name(): String = "followed"
    override def columns(): Array[Column] = Array(Column.create("id", LongType))
    override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
      planned()
      () => NoRows
    }
  }

  private object NoRows extends Scan with Batch {
    override def readSchema(): StructType = new StructType().add("id", LongType)
    override def toBatch: Batch = this
    override def planInputPartitions(): Array[InputPartition] = Array.empty
    override def createReaderFactory(): PartitionReaderFactory =
      _ =>
        new PartitionReader[InternalRow] {
          override def next(): Boolean = false
          override def get(): InternalRow = throw new NoSuchElementException
          override def close(): Unit = ()
        }
  }

  private lazy val session = spark.asInstanceOf[classic.SparkSession]
  private lazy val manager = session.sharedState.cacheManager

  private def cached(table: Table): LogicalPlan = {
    val plan = DataSourceV2Relation.create(table, None, None)
    manager.cacheQuery(
      session,
      plan,
      None,
      StorageLevel.MEMORY_AND_DISK
    )
    plan
  }

  private def started(): Thread = {
    val thread = new Thread(() => CachedPlans.refresh(session, new Path("/followed")))
    thread.setDaemon(true)
    thread.start()
    thread
  }

  override def afterEach(context: AfterEach): Unit = manager.clearCache()

  test("data that one refresh is recomputing is recomputed again for the version of another") {
    @volatile var newest = 4L
    @volatile var hold = false
    val read = new AtomicReference[List[Long]](Nil)
    val (computing, release) = (new CountDownLatch(1), new CountDownLatch(1))
    cached(new Followed(
      () => {
        read.updateAndGet(newest :: _): Unit
        if (hold) {
          computing.countDown()
          release.await(60, TimeUnit.SECONDS): Unit
        }
      },
      () => ()
    )): Unit
    newest = 5
    hold = true
    val first = started()
    assert(computing.await(60, TimeUnit.SECONDS))
    newest = 6
    hold = false
    val second = started()
    // It has nothing left to do, or it waits for the first.
    val deadline = System.nanoTime + TimeUnit.SECONDS.toNanos(60)
    while (
      second.isAlive && second.getState != Thread.State.TIMED_WAITING &&
      System.nanoTime < deadline
    )
      Thread.sleep(5)
    release.countDown()
    Seq(first, second).foreach(_.join(60000))
    assert(!first.isAlive && !second.isAlive)
    assertEquals(read.get, List(6L, 5L, 4L))
    assert(!manager.isEmpty)
  }

  test("no table has a version while data of an older one is in the cache") {
    var plan: Option[LogicalPlan] = None
    var older: Option[AnyRef] = None
    var isOld = Seq.empty[Boolean]
    def entry: Option[AnyRef] =
      plan.flatMap(manager.lookupCachedData(
        session,
        _
      )).map(_.cachedRepresentation.cacheBuilder.cachedPlan)
    plan =
      Some(cached(new Followed(() => (), () => isOld :+= older.exists(o => entry.exists(_ eq o)))))
    older = entry
    assert(older.isDefined)
    CachedPlans.refresh(session, new Path("/followed"))
    assertEquals(isOld.distinct, Seq(false))
  }
}
