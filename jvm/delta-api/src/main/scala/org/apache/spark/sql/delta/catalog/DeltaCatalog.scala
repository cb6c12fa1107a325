package org.apache.spark.sql.delta.catalog

import io.deltaic.spark.DeltaicCatalog

/** Deltaic's catalog under the name of delta-spark's, for settings that name that one. */
class DeltaCatalog extends DeltaicCatalog
