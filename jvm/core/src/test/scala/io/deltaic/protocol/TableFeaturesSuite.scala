package io.deltaic.protocol

class TableFeaturesSuite extends munit.FunSuite {

  private val metadata = Metadata("id", schemaString = Metadata.EmptySchema)

  private def withProperty(name: String, value: String): Metadata =
    metadata.copy(configuration = Map(name -> value))

  private def features(readers: String*)(writers: String*): Protocol =
    Protocol(3, 7, Some(readers.toSet), Some((readers ++ writers).toSet))

  private def refusedFeatures(body: => Unit): String = {
    val e = intercept[DeltaicThrowable](body)
    assert(
      e.getMessage.contains("/t") && e.getMessage.toLowerCase.contains("version 4"),
      e.getMessage
    )
    e.parameters.getOrElse("features", e.condition)
  }

  // Protocol: identity-columns-1
  test("legacy versions imply the features the protocol lists for them") {
    assertEquals(
      TableFeatures.writerFeaturesOf(Protocol(2, 6)),
      Set(
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "columnMapping",
        "identityColumns"
      )
    )
    assertEquals(TableFeatures.readerFeaturesOf(Protocol(2, 6)), Set("columnMapping"))
    assertEquals(TableFeatures.writerFeaturesOf(Protocol(1, 1)), Set.empty[String])
  }

  test("writer-only features, deletion vectors and timestampNtz are readable") {
    Seq(
      Protocol(1, 1),
      Protocol(1, 6),
      Protocol(1, 7, None, Some(Set("rowTracking", "clustering", "somethingNew"))),
      features("deletionVectors", "timestampNtz", "vacuumProtocolCheck")(
        "inCommitTimestamp",
        "icebergCompatV2"
      )
    ).foreach(TableFeatures.requireReadable("/t", 4, _, Some(metadata)))
  }

  test("column mapping is readable") {
    Seq(Protocol(2, 5), features("columnMapping")("columnMapping")).foreach { protocol =>
      TableFeatures.requireReadable("/t", 4, protocol)
    }
  }

  // Protocol: supported-features-1, table-features-4, table-features-5
  test("unreadable features are refused by name, unknown ones too") {
    val protocol = features("fromTheFuture", "catalogManaged", "deletionVectors")()
    assertEquals(
      refusedFeatures(TableFeatures.requireReadable("/t", 4, protocol, Some(metadata))),
      "catalogManaged, fromTheFuture"
    )
  }

  test("data files of another format than Parquet are refused by its name") {
    val orc = metadata.copy(format = Format("orc"))
    val e = intercept[DeltaicThrowable](
      TableFeatures.requireReadable("/t", 4, Protocol(1, 2), Some(orc))
    )
    assertEquals(e.condition, "DELTAIC_UNSUPPORTED_FILE_FORMAT")
    assert(e.getMessage.contains("orc") && e.getMessage.contains("/t"), e.getMessage)
    assert(!TableFeatures.isReadable(Protocol(1, 2), Some(orc)))
  }

  test("writer-only features, even unknown ones, do not prevent reads") {
    val protocol = Protocol(1, 7, None, Some(Set("collations-preview", "fromTheFuture")))
    TableFeatures.requireReadable("/t", 4, protocol, Some(metadata))
  }

  // Protocol: protocol-evolution-1, protocol-evolution-5, table-features-2
  test("unknown protocol versions and missing feature lists are refused") {
    assertEquals(
      refusedFeatures(TableFeatures.requireReadable("/t", 4, Protocol(4, 7))),
      "DELTAIC_UNSUPPORTED_READER_VERSION"
    )
    assertEquals(
      refusedFeatures(TableFeatures.requireReadable("/t", 4, Protocol(3, 7))),
      "DELTAIC_PROTOCOL_INVALID"
    )
  }

  private def bothSides(readers: String*)(writers: String*): Protocol =
    Protocol(3, 7, Some(readers.toSet), Some(writers.toSet))

  test("a reader-writer feature is supported if both sides list it") {
    val supported = Seq(Protocol(2, 5), bothSides("columnMapping")("columnMapping"))
    val listedByOne = Seq(
      Protocol(2, 1),
      Protocol(2, 7, None, Some(Set.empty)),
      Protocol(1, 7, None, Some(Set("columnMapping"))),
      bothSides()("columnMapping"),
      bothSides("columnMapping")()
    )
    val unlisted = Seq(Protocol(1, 2), Protocol(1, 5), Protocol(1, 6), bothSides()())
    supported.foreach(p => assert(TableFeatures.supports(p, "columnMapping"), p))
    (listedByOne ++ unlisted).foreach(p => assert(!TableFeatures.supports(p, "columnMapping"), p))
    (supported ++ listedByOne).foreach(p => assert(TableFeatures.isListed(p, "columnMapping"), p))
    unlisted.foreach(p => assert(!TableFeatures.isListed(p, "columnMapping"), p))
    assert(TableFeatures.supports(Protocol(1, 6), "identityColumns"))
    assert(TableFeatures.isListed(Protocol(1, 6), "identityColumns"))
  }

  test("a reader feature that this build lacks is refused whichever side lists it") {
    Seq(bothSides("catalogManaged")(), bothSides()("catalogManaged")).foreach { protocol =>
      assertEquals(
        refusedFeatures(TableFeatures.requireReadable("/t", 4, protocol, Some(metadata))),
        "catalogManaged"
      )
    }
  }

  test("a feature has its older spellings as aliases") {
    val preview = features("typeWidening-preview")()
    assert(TableFeatures.supports(preview, "typeWidening"))
    assert(!TableFeatures.isActive(preview, metadata, "typeWidening"))
    val on = withProperty("delta.enableTypeWidening", "true")
    assert(TableFeatures.isActive(preview, on, "typeWidening"))
    assert(!TableFeatures.isActive(Protocol(1, 2), on, "typeWidening"))
    assert(TableFeatures.isEnabled(preview, on, "typeWidening"))
    assert(!TableFeatures.isEnabled(Protocol(1, 2), on, "typeWidening"))
  }

  test("a feature that only columns use is active, but not enabled") {
    val widened = """{"type":"struct","fields":[{"name":"n","type":"integer","nullable":true,
      "metadata":{"delta.typeChanges":[{"fromType":"short","toType":"integer"}]}}]}"""
    val table = metadata.copy(schemaString = widened)
    val protocol = features("typeWidening")()
    assert(TableFeatures.isActive(protocol, table, "typeWidening"))
    assert(!TableFeatures.isEnabled(protocol, table, "typeWidening"))
  }

  // Protocol: writer-addcdcfile-1
  test("a property's older spelling enables a feature if the newer one is unset") {
    val (older, newer) = ("delta.enableChangeDataCapture", "delta.enableChangeDataFeed")
    def isActive(set: (String, String)*): Boolean = TableFeatures.isActive(
      Protocol(1, 4),
      metadata.copy(configuration = set.toMap),
      "changeDataFeed"
    )
    assert(isActive(older -> "true"))
    assert(!isActive(older -> "true", newer -> "false"))
    assert(isActive(older -> "false", newer -> "true"))
  }

  test("draft names, in any case, are aliases of the feature") {
    Seq("timestampNTZ" -> "timestampNtz", "DeletionVectors" -> "deletionVectors").foreach {
      case (draft, name) =>
        val protocol = features(draft)()
        TableFeatures.requireReadable("/t", 4, protocol, Some(metadata))
        assert(TableFeatures.supports(protocol, name), draft)
    }
    val invariants = Protocol(1, 7, None, Some(Set("columnInvariants")))
    assert(TableFeatures.supports(invariants, "invariants"))
  }

  test("a draft feature that stores its state elsewhere is another feature") {
    Seq(
      "rowIds" -> "rowTracking",
      "delta.rowIds" -> "rowTracking",
      "inCommitTimestamp-preview" -> "inCommitTimestamp"
    ).foreach { case (draft, feature) =>
      val protocol = Protocol(1, 7, None, Some(Set(draft)))
      TableFeatures.requireReadable("/t", 4, protocol, Some(metadata))
      assert(!TableFeatures.supports(protocol, feature))
    }
  }

  test("a feature is found as in Python: by each spelling, case-insensitively") {
    TableFeatures.all.foreach { feature =>
      (feature.aliases + feature.name).foreach { spelling =>
        Seq(spelling, spelling.toUpperCase, spelling.toLowerCase).foreach { written =>
          assertEquals(TableFeatures.find(written).map(_.name), Some(feature.name), written)
        }
      }
    }
    assertEquals(TableFeatures.find("somethingNew"), None)
  }

  test("table-features.json is consistent") {
    val names = TableFeatures.all.flatMap(f => f.aliases + f.name)
    // timestampNTZ differs from timestampNtz only by case; both are the same feature.
    assertEquals(names.distinct.size, names.size)
  }
}
