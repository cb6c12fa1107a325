"""The settings of a run: data, scale and Spark. They are sent to every worker as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).resolve().parent.parent
LOCAL_CACHE = REPOSITORY / "build" / "bench"
SPARK_TEMPORARY = LOCAL_CACHE / "spark"

# Scale factor of TPC-H whose lineitem has a little more than 10 million rows.
_TEN_MILLION_ROWS = 1.67
_LINEITEM_FILES = 10
_QUICK_SCALE = 0.01


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run, which are the same for every engine.

    Attributes
    ----------
    data
        Root URI of all tables: a ``file:`` URI, unless the run is on a cluster.
    scale
        Multiplies the rows and the files of the large tables; 1 means 10 million rows, 10 files.
    quick
        Few repetitions: a smoke test, not a measurement.
    tpc_scale_factor
        Scale factor of TPC-DS and TPC-H.
    queries
        The selected queries of TPC-DS and TPC-H, such as ``q14a``; all if it is empty.
    confs
        Additional Spark settings.
    """

    data: str = LOCAL_CACHE.as_uri()
    scale: float = 1.0
    quick: bool = False
    master: str = "local[2]"
    driver_memory: str = "3g"
    shuffle_partitions: int = 2
    tpc_scale_factor: float = 1.0
    queries: tuple[str, ...] = ()
    confs: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether the tables are stored on the local file system."""
        return urlsplit(self.data).scheme == "file"

    @property
    def lineitem_scale_factor(self) -> float:
        """The TPC-H scale factor to generate lineitem at."""
        return round(_TEN_MILLION_ROWS * self.scale, 6)

    @property
    def lineitem_files(self) -> int:
        """The number of data files of every lineitem table: about a million rows each."""
        return max(_LINEITEM_FILES, round(_LINEITEM_FILES * self.scale))

    def spark_confs(self) -> dict[str, str]:
        """Return the Spark settings that all engines share."""
        confs = {
            "spark.driver.memory": self.driver_memory,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": str(self.shuffle_partitions),
            "spark.sql.warehouse.dir": f"{self.data}/warehouse",
            "spark.log.level": "WARN",
            # The UI data of earlier queries must not fill the heap of later ones.
            "spark.ui.retainedJobs": "50",
            "spark.ui.retainedStages": "50",
            "spark.ui.retainedTasks": "1000",
            "spark.sql.ui.retainedExecutions": "10",
        }
        if self.master.startswith("local"):
            confs["spark.local.dir"] = str(SPARK_TEMPORARY)
        if self.quick:
            # A smoke test is too short to benefit from the second compiler.
            confs["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1"
        return {**confs, **self.confs}

    def to_json(self) -> str:
        """Return one line of JSON that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "queries": tuple(fields["queries"])})  # JSON has no tuples


def quick_scale(scale: float | None) -> float:
    """Return the scale of a ``--quick`` run: that of the caller, if it is given."""
    return _QUICK_SCALE if scale is None else scale


def root_uri(place: str) -> str:
    """Return the root of all tables as a URI with a scheme; a bare path is on this machine."""
    if urlsplit(place).scheme:
        return place.rstrip("/")
    return Path(place).resolve().as_uri()
