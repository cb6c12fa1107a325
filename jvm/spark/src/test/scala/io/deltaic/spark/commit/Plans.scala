package io.deltaic.spark.commit

import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.spark.util.Json

/** Plans of commits, as Python returns them. */
object Plans {

  /** A plan that changes nothing but rows. */
  def ofRows: ObjectNode = Message.of("CommitPlan")(
    "definition" -> Message.of("Definition")("protocol" -> Json.obj(), "metaData" -> Json.obj()),
    "base" -> Message.of("PreviousVersion")(
      "version" -> -1,
      "timestampMs" -> -1,
      "rowIdHighWaterMark" -> -1
    ),
    "isBlindAppend" -> true,
    "changesProtocol" -> false,
    "changesMetaData" -> false,
    "changesColumns" -> false,
    "enablesInCommitTimestamps" -> false,
    "appendsIfCreatedConcurrently" -> false,
    "domains" -> Nil,
    "changesData" -> true,
    "writesChangeDataFeed" -> false,
    "wasAppendOnly" -> false,
    "alreadyCommitted" -> false
  )
}
