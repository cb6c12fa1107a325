package io.deltaic.spark.commit

import io.deltaic.protocol.AddFile

/** An entry of the log without a file. */
object LoggedFile {

  def apply(path: String, rows: Long, dataChange: Boolean = true): AddFile = AddFile(
    path,
    Map.empty,
    sizeBytes = 100,
    modificationTimeMs = 1,
    dataChange = dataChange,
    stats = Some(s"""{"numRecords":$rows}""")
  )
}
