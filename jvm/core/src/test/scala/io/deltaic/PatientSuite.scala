package io.deltaic

import scala.concurrent.duration.{Duration, DurationInt}

/** Tests that take seconds alone, but may exceed munit's limit of half a minute on a busy machine. */
trait PatientSuite extends munit.FunSuite {
  override val munitTimeout: Duration = 5.minutes
}
