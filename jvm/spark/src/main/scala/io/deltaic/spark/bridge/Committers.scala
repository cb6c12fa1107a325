package io.deltaic.spark.bridge

import org.apache.spark.sql.classic.SparkSession

/**
 * The committer of this JVM: the one that the driver's Python registered, else that of a sidecar,
 * which is started for the first commit and again should it have died.
 */
private[deltaic] object Committers {
  @volatile private var registered: Option[Committer] = None
  private var sidecar: Option[Sidecar] = None

  /**
   * Called by Python: by a driver that loads the package, or by a sidecar that came up. Not
   * synchronized: a sidecar registers on a thread of its gateway while [[current]] waits for it.
   */
  def register(committer: Committer): Unit = registered = Some(committer)

  def current(spark: SparkSession): Committer = synchronized {
    if (sidecar.exists(!_.isAlive)) {
      sidecar.foreach(_.stop())
      sidecar = None
      registered = None
    }
    if (registered.isEmpty) sidecar = Some(Sidecar.start(spark))
    registered.getOrElse(
      throw new IllegalStateException("the sidecar reported ready but registered no committer")
    )
  }
}
