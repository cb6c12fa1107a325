"""TPC-H's lineitem: generated once, then loaded by every engine into the same number of files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import DataFrame

from bench.lab import Answer, Lab, collect
from bench.settings import LOCAL_CACHE, Settings

SCHEMA = (
    "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, "
    "l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), "
    "l_tax DECIMAL(15,2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, "
    "l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, "
    "l_comment STRING"
)

# One row in a hundred, and ten of them, spread over every file.
RANDOM_ROWS = "pmod(xxhash64(l_orderkey, l_linenumber), 100) = 0"
RANDOM_TENTH = "pmod(xxhash64(l_orderkey, l_linenumber), 100) < 10"

# What an UPDATE sets: a number and a string.
UPDATED = {
    "l_quantity": "CAST(l_quantity + 1 AS DECIMAL(15,2))",
    "l_shipinstruct": "concat(l_shipinstruct, ' AGAIN')",
}

# Order keys of TPC-H run up to this many per unit of scale.
_ORDER_KEYS_PER_SCALE = 6_000_000
_ONE_FILE_EACH = "64g"


def contiguous_rows(settings: Settings) -> str:
    """Return the predicate of one row in a hundred in one run of order keys, around the middle.

    The generator writes rows in the order of their keys, so the run is stored in one or two files.
    """
    return keys_between(settings, 0.495, 0.505)


def keys_between(settings: Settings, start: float, end: float) -> str:
    """Return the predicate of a range of order keys, whose bounds are fractions of all keys."""
    keys = _ORDER_KEYS_PER_SCALE * settings.lineitem_scale_factor
    return f"l_orderkey >= {int(start * keys)} AND l_orderkey < {int(end * keys)}"


def table_name(settings: Settings, deleted: str = "none") -> str:
    """Return the name of a prepared table, with its size and what was deleted."""
    return f"{_data_set(settings)}-{deleted}"


def generate(settings: Settings) -> None:
    """Generate the source files on this machine, unless they exist."""
    folder = _generated(settings)
    if folder.exists():
        return
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    subprocess.run(
        [
            Path(sys.executable).parent / "tpchgen-cli",
            "parquet",
            "--tables=lineitem",
            f"--scale-factor={settings.lineitem_scale_factor}",
            f"--parts={settings.lineitem_files}",
            "--field-ids=false",
            "--quiet",
            f"--output-dir={partial}",
        ],
        check=True,
    )
    partial.rename(folder)


def prepare(lab: Lab) -> str:
    """Return the path of the engine's own lineitem with no row deleted; create it if missing."""
    return lab.prepared(table_name(lab.settings), lambda path: _load(lab, path))


def whole(lab: Lab) -> str:
    """Return the path of the engine's own lineitem. No I/O."""
    return lab.prepared_path(table_name(lab.settings))


def clone(lab: Lab, name: str) -> str:
    """Return the path of a copy that may be changed and whose snapshot is cached."""
    path = lab.scratch(name)
    lab.storage.clone(whole(lab), path)
    lab.read(path, SCHEMA).where("l_orderkey < 0").count()
    return path


def generated_rows(lab: Lab) -> DataFrame:
    """Return the rows as they were generated, whatever the engine."""
    return lab.spark.read.schema(SCHEMA).parquet(_source(lab))


def content(rows: DataFrame) -> Answer:
    """Return a digest of the rows of a table."""
    return collect(
        rows.selectExpr(
            "count(*)",
            *(f"sum(l_{name})" for name in ("orderkey", "linenumber", "quantity", "extendedprice")),
            "sum(octet_length(l_shipinstruct))",
        )
    )


def append(lab: Lab, path: str) -> None:
    """Append all rows to a table, a file for each of the generated ones."""
    split_confs = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {key: lab.spark.conf.get(key) for key in split_confs}
    try:
        for key in split_confs:
            lab.spark.conf.set(key, _ONE_FILE_EACH)
        lab.append(generated_rows(lab), path)
    finally:
        for key, value in before.items():
            lab.spark.conf.set(key, str(value))


def _data_set(settings: Settings) -> str:
    return f"lineitem-{settings.lineitem_scale_factor:g}x{settings.lineitem_files}"


def _generated(settings: Settings) -> Path:
    return LOCAL_CACHE / "generated" / _data_set(settings)


def _source(lab: Lab) -> str:
    return lab.uploaded(_generated(lab.settings) / "lineitem", _data_set(lab.settings))


def _load(lab: Lab, path: str) -> None:
    lab.create(path, SCHEMA)
    append(lab, path)
    files = lab.storage.data_files(path)
    if files != lab.settings.lineitem_files:
        raise RuntimeError(
            f"{lab.engine.name} wrote {files} files to {path} instead of "
            f"{lab.settings.lineitem_files}; scans of unequal tables cannot be compared."
        )
