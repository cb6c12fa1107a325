package io.deltaic.spark.scan.deletionvectors

import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.unsafe.types.UTF8String

/** Tests the rows of one task, in the order in which they are read. */
private[spark] trait RowProbe {

  /** @param constant the value of the row's file in the constant column; never null */
  def isDeleted(constant: UTF8String, rowIndex: Long): Boolean
}

/** Is serialized with the plan and creates the probes in the executors. */
private[spark] trait RowProbeSource extends Serializable {

  /** The class of the probes, which is final: generated code calls its methods directly. */
  def probeClass: Class[_ <: RowProbe]

  def newProbe(): RowProbe
}

/** A scan that reads rows which are not part of its result, and fails unless they are filtered. */
private[spark] trait ScanOfLiveRows extends Scan {

  /** Whether the scan lacks the columns of the filter it needs. */
  def needsDeletionVectorFilter: Boolean

  /** The same scan, producing also what [[IsDeleted]] reads. */
  def withDeletionVectors: ScanOfLiveRows

  /** The constant column that the probes read. */
  def rowFilterColumn: String

  /** The probes that [[IsDeleted]] uses. */
  def rowProbes: RowProbeSource
}
