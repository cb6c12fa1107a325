package io.deltaic

import scala.concurrent.duration.{Duration, DurationInt}

/** Tests that take seconds where they run alone, and beside others on a busy machine half a minute, munit's limit. */
trait PatientSuite extends munit.FunSuite {
  override val munitTimeout: Duration = 5.minutes
}
