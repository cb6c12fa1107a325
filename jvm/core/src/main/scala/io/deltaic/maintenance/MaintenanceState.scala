package io.deltaic.maintenance

import org.apache.hadoop.fs.Path

/** The maintenance state of a table in this process. If it is lost, `_last_checkpoint` is read again. */
private[maintenance] final class MaintenanceState {
  private var written = -1L
  private var due = Set.empty[Long]
  private var cleanedMs = Long.MinValue
  private var failures = Set.empty[String]

  def newestWritten: Long = synchronized(written)
  def checkpointed(version: Long): Unit = synchronized { written = version }

  /** The newest checkpoint that was written or is being written. */
  def newestCheckpoint: Long = synchronized(due.foldLeft(written)(_ max _))

  /** Until the checkpoint is written or fails, later commits need not write one. */
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

private[deltaic] object MaintenanceState {
  private val MaxTables = 1000

  private val states = new java.util.LinkedHashMap[String, MaintenanceState](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[String, MaintenanceState]): Boolean =
      size > MaxTables
  }

  private[maintenance] def of(table: Path): MaintenanceState =
    states.synchronized(states.computeIfAbsent(table.toString, _ => new MaintenanceState))

  /** The names of the tasks whose last run failed. */
  def failed(table: Path): Set[String] = of(table).failed

  /** The newest checkpoint that this process has recorded or is about to write, -1 for none. */
  def newestCheckpoint(table: Path): Long = of(table).newestCheckpoint

  /** Discards the state of a table, for example after its directory was deleted. */
  def forget(table: Path): Unit = states.synchronized {
    states.remove(table.toString)
    ()
  }
}
