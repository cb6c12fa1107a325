package io.deltaic.spark.scan

import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.unsafe.types.UTF8String

/** Answers for the rows of one task, in the order in which they are read. */
private[spark] trait RowProbe {

  /** @param constant what the file of the row says about its rows; never null */
  def isDeleted(constant: UTF8String, rowIndex: Long): Boolean
}

/** Goes with the plan to the executors and makes the probes there. */
private[spark] trait RowProbeSource extends Serializable {

  /** The class of the probes, which is final: generated code calls its methods directly. */
  def probeClass: Class[_ <: RowProbe]

  def newProbe(): RowProbe
}

/** A scan that reads rows which are not in its answer, and refuses to unless they are filtered. */
private[spark] trait ScanOfLiveRows extends Scan {

  /** Whether the scan lacks the columns of the filter it needs. */
  def needsDeletionVectorFilter: Boolean

  /** The same scan, producing also what [[IsDeleted]] reads. */
  def withDeletionVectors: ScanOfLiveRows

  /** The column that says about the rows of each file what the probes need to know. */
  def rowFilterColumn: String

  /** What [[IsDeleted]] asks. */
  def rowProbes: RowProbeSource
}
