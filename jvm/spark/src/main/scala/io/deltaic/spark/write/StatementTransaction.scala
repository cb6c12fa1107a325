package io.deltaic.spark.write

/**
 * The transaction identifier of the statement that this thread runs, if a method of the API specifies one. A setting of
 * the session would apply to the statements of its other threads, too.
 */
private[spark] object StatementTransaction {
  private val current = ThreadLocal.withInitial[Map[String, String]](() => Map.empty)

  /** Runs a statement with the identifier (Protocol § Transaction Identifiers). */
  def within[A](appId: String, version: Long)(statement: => A): A = {
    val before = current.get
    current.set(Map("txnappid" -> appId, "txnversion" -> version.toString))
    try statement
    finally current.set(before)
  }

  /** The identifier as options of a write, keys in lower case. */
  def options: Map[String, String] = current.get
}
