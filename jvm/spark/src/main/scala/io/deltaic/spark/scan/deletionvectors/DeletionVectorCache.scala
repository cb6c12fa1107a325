package io.deltaic.spark.scan.deletionvectors

import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, ExecutionException}

import scala.util.{Failure, Success, Try}

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.dv.DeletionVector

/**
 * Deletion vectors that were loaded, shared by the tasks of a JVM and bounded by their memory.
 *
 * The first task that requests a vector loads it; other tasks wait for that task. If it fails, a
 * waiting task retries, because the first task may only have been killed.
 *
 * Guava divides a cache into segments, by default four, and does not cache an entry that is heavier
 * than its segment's share. This cache has one segment: loading a vector is slow, and lookups are
 * fast.
 */
private[scan] final class DeletionVectorCache(maxBytes: Long) {
  import DeletionVectorCache._

  private val loaded: Cache[Key, DeletionVector] = CacheBuilder
    .newBuilder()
    .concurrencyLevel(1)
    .maximumWeight(maxBytes)
    .weigher[Key, DeletionVector]((key: Key, vector: DeletionVector) =>
      (vector.memoryBytes + key.constant.numBytes).min(Int.MaxValue.toLong).toInt
    )
    .build[Key, DeletionVector]()

  private val loading = new ConcurrentHashMap[Key, CompletableFuture[DeletionVector]]

  def get(key: Key)(load: Load): DeletionVector = {
    val found = loaded.getIfPresent(key)
    if (found != null) found
    else {
      val mine = new CompletableFuture[DeletionVector]
      loading.putIfAbsent(key, mine) match {
        case null =>
          fetch(Seq(key -> mine), load)
          unwrapped(mine)
        case other => Try(other.get()).getOrElse(load(Seq(key)).head.get)
      }
    }
  }

  /** Loads together the vectors that are neither cached nor being loaded; failures are left to `get`. */
  def prefetch(keys: Seq[Key])(load: Load): Unit = {
    val mine = keys.distinct
      .filter(loaded.getIfPresent(_) == null)
      .map(_ -> new CompletableFuture[DeletionVector])
      .filter { case (key, future) => loading.putIfAbsent(key, future) == null }
    if (mine.nonEmpty) fetch(mine, load)
  }

  /**
   * Loads the vectors that the calling task has entered into `loading`. Every future completes, even after a
   * failure.
   */
  private def fetch(claimed: Seq[(Key, CompletableFuture[DeletionVector])], load: Load): Unit =
    try {
      // Another task may have finished between the look into the cache and the claim.
      val absent = claimed.filterNot { case (key, future) =>
        Option(loaded.getIfPresent(key)).exists(future.complete)
      }
      if (absent.nonEmpty)
        absent.zip(load(absent.map(_._1))).foreach {
          case ((key, future), Success(vector)) =>
            loaded.put(key, vector)
            future.complete(vector)
          case ((_, future), Failure(error)) => future.completeExceptionally(error)
        }
    } catch {
      case error: Throwable =>
        claimed.foreach(_._2.completeExceptionally(error))
        throw error
    } finally claimed.foreach { case (key, future) => loading.remove(key, future) }

  private def unwrapped(future: CompletableFuture[DeletionVector]): DeletionVector =
    try future.get()
    catch { case e: ExecutionException => throw e.getCause }
}

private[scan] object DeletionVectorCache {

  /** @param constant a [[DeletionVectorConstant]] of the table */
  final case class Key(table: String, constant: UTF8String)

  /** Reads vectors, one for each key, in their order. */
  type Load = Seq[Key] => Seq[Try[DeletionVector]]
}
