package io.deltaic.spark.util

import java.nio.charset.StandardCharsets.UTF_8

/** The version of this build, which the build writes beside the shared resources. */
private[spark] object Version {
  lazy val current: String = {
    val in = getClass.getResourceAsStream("/io/deltaic/version.txt")
    try new String(in.readAllBytes(), UTF_8).trim
    finally in.close()
  }
}
