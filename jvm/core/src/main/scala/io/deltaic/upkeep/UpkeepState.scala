package io.deltaic.upkeep

import org.apache.hadoop.fs.Path

/** What this process remembers of the upkeep of a table. Forgetting it costs a look at the log, no more. */
private[upkeep] final class UpkeepState {
  private var written = -1L
  private var due = Set.empty[Long]
  private var cleanedMs = Long.MinValue
  private var failures = Set.empty[String]

  def newestWritten: Long = synchronized(written)
  def checkpointed(version: Long): Unit = synchronized { written = version }

  /** The newest checkpoint that is written or in the making. */
  def newestCheckpoint: Long = synchronized(due.foldLeft(written)(_ max _))

  /** Until it is done or fails, commits that follow owe none. */
  def checkpointBegins(version: Long, task: String): Unit = synchronized {
    due += version
    failures -= task
  }
  def checkpointEnds(version: Long): Unit = synchronized(due -= version)

  /** The cutoff of the last cleanup. */
  def cleanedBefore: Long = synchronized(cleanedMs)
  def cleaned(cutoffMs: Long): Unit = synchronized { cleanedMs = cutoffMs }

  def failed: Set[String] = synchronized(failures)
  def failedAt(task: String): Unit = synchronized(failures += task)
  def succeeded(task: String): Unit = synchronized(failures -= task)
}

private[deltaic] object UpkeepState {
  private val TablesKept = 1000

  private val states = new java.util.LinkedHashMap[String, UpkeepState](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[String, UpkeepState]): Boolean =
      size > TablesKept
  }

  private[upkeep] def of(table: Path): UpkeepState =
    states.synchronized(states.computeIfAbsent(table.toString, _ => new UpkeepState))

  /** The names of the tasks that failed when they were tried last. */
  def failed(table: Path): Set[String] = of(table).failed

  /** The newest checkpoint that this process knows of or is about to write, -1 for none. */
  def newestCheckpoint(table: Path): Long = of(table).newestCheckpoint

  /** Forgets a table, as when its directory was deleted. */
  def forget(table: Path): Unit = states.synchronized {
    states.remove(table.toString)
    ()
  }
}
