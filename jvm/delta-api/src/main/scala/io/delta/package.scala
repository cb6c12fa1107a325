package io

package object delta {

  /** The version of Deltaic, which has no version of delta-spark. */
  val VERSION: String = deltaic.spark.PythonApi.version()
}
