package io.deltaic

class PackageLayersSuite
    extends PackageLayers(
      Seq("io.deltaic"),
      Seq(
        "protocol",
        "dv",
        "log",
        "replay.checkpoint",
        "replay",
        "maintenance"
      ).map("io.deltaic." + _)
    )
