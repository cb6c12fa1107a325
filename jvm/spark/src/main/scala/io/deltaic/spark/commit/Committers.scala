package io.deltaic.spark.commit

import org.apache.spark.sql.classic.SparkSession

/**
 * The committer of this JVM: the one that the driver's Python registered, else that of a committer process.
 * The committer process is started for the first commit, and restarted if it has died.
 */
private[deltaic] object Committers {
  @volatile private var registered: Option[Committer] = None
  private var process: Option[CommitterProcess] = None

  /**
   * Called by Python: by a driver that loads the package, or by a committer process that came up. Not
   * synchronized: a committer process registers on a thread of its gateway while [[current]] waits for it.
   */
  def register(committer: Committer): Unit = registered = Some(committer)

  def current(spark: SparkSession): Committer = synchronized {
    if (process.exists(!_.isAlive)) {
      process.foreach(_.stop())
      process = None
      registered = None
    }
    if (registered.isEmpty) process = Some(CommitterProcess.start(spark))
    registered.getOrElse(
      throw new IllegalStateException(
        "the committer process reported ready but registered no committer"
      )
    )
  }
}
