package io.delta.sql

import io.deltaic.spark.DeltaicExtension

/** Deltaic's extension under the name of delta-spark's, for settings that name that one. */
class DeltaSparkSessionExtension extends DeltaicExtension
