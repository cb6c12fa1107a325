"""TPC-DS and TPC-H: data that is generated once and loaded by every engine, and queries.

Neither is in the repository: the queries are from the jar of Spark's tests, the data from DuckDB's
extension and tpchgen-cli.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from bench.lab import Answer, Lab, collect
from bench.settings import LOCAL_CACHE, REPOSITORY, Settings

_QUERY_JARS = REPOSITORY / ".tools" / "tpc"
_DUCKDB_PYTHON = REPOSITORY / ".tools" / "tpc-data" / "venv" / "bin" / "python"

_GENERATE_TPCDS = """
import pathlib, sys, duckdb, duckdb_extension_tpcds
folder, scale = pathlib.Path(sys.argv[1]), sys.argv[2]
[extension] = pathlib.Path(duckdb_extension_tpcds.__file__).parent.rglob("tpcds.duckdb_extension")
database = duckdb.connect(str(folder / "generated.duckdb"))
database.execute("SET memory_limit = '4GB'")
database.execute(f"LOAD '{extension}'")
database.execute(f"CALL dsdgen(sf = {scale})")
# Spark's queries use the name in the specification.
database.execute("ALTER TABLE customer RENAME c_last_review_date_sk TO c_last_review_date")
for (table,) in database.execute("SHOW TABLES").fetchall():
    (folder / table).mkdir()
    database.execute(f"COPY {table} TO '{folder / table}/data.parquet' (FORMAT parquet)")
database.close()
for file in folder.glob("generated.duckdb*"):
    file.unlink()
"""

# Quick mode only checks that a benchmark works.
_QUICK_QUERIES = 3


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark.

    Attributes
    ----------
    folder
        The folder of the queries in the jar of Spark's tests.
    dates
        The fact tables, with the date column of each for partitioned layouts.
    keys
        The fact tables, with the columns by whose hash one row in a hundred is deleted.
    """

    name: str
    title: str
    folder: str
    generate: Callable[[Path, float], None]
    dates: Mapping[str, str]
    keys: Mapping[str, tuple[str, ...]]

    def queries(self, settings: Settings) -> dict[str, str]:
        """Return the SQL of the selected queries by name, in order."""
        [jar] = _QUERY_JARS.glob("spark-sql_*-tests.jar")
        with zipfile.ZipFile(jar) as files:
            strings = {
                found[1]: files.read(name).decode()
                for name in files.namelist()
                if (found := re.fullmatch(rf"{self.folder}/(q\w+)\.sql", name))
            }
        names = sorted(strings, key=_in_order)
        if settings.queries:
            names = [name for name in names if name in settings.queries]
        elif settings.quick:
            names = names[:_QUICK_QUERIES]
        return {name: strings[name] for name in names}


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of the tables of a suite."""

    by_date: bool = False
    deleted: bool = False

    @property
    def name(self) -> str:
        """The suffix of the names of scenarios and tables."""
        return ("-by-date" if self.by_date else "") + ("-deleted" if self.deleted else "")

    @property
    def title(self) -> str:
        """The name in the report."""
        return ", ".join(
            (
                "partitioned by date" if self.by_date else "unpartitioned",
                "1 % deleted" if self.deleted else "no DV",
            )
        )


def prepare(lab: Lab, suite: Suite, layout: Layout) -> dict[str, str]:
    """Return the paths of the engine's own tables by name; create them if they are missing."""
    paths = {}
    for table, source in _sources(lab, suite).items():
        is_fact_table = table in suite.dates
        stored = layout if is_fact_table else Layout()
        name = f"{_data_set(suite, lab.settings)}{stored.name}/{table}"
        paths[table] = lab.prepared(name, partial(_load, lab, suite, stored, table, source))
    return paths


def write(lab: Lab, suite: Suite, layout: Layout, table: str, path: str) -> None:
    """Write one generated table."""
    _write(lab, suite, layout, table, _generated(lab, suite, table), path)


def tables(lab: Lab, suite: Suite) -> list[str]:
    """Return the names of the tables; generate them if they do not exist."""
    return list(_sources(lab, suite))


def create_views(lab: Lab, suite: Suite, paths: Mapping[str, str]) -> None:
    """Create the views of the queries. Plain Parquet gets a schema, so that it reads no footer."""
    for table, path in paths.items():
        reader = lab.spark.read.format(lab.engine.source)
        if not lab.engine.is_delta:
            reader = reader.schema(_generated(lab, suite, table).schema)
        reader.load(path).createOrReplaceTempView(table)


def answer(lab: Lab, query: str) -> Answer:
    """Return the number of rows and a digest of them that does not depend on their order.

    A final LIMIT is removed, because its result is not deterministic if the order has ties.
    Floating-point numbers are rounded, because their sum depends on the order.
    """
    df = lab.spark.sql(re.sub(r"\blimit\s+\d+\s*;?\s*$", "", query, flags=re.IGNORECASE))
    columns = [f"c{i}" for i in range(len(df.columns))]
    rows = df.toDF(*columns)
    strings = [
        F.coalesce(
            F.format_string("%.6e", F.col(field.name) + F.lit(0.0))
            if isinstance(field.dataType, DoubleType | FloatType)
            else F.col(field.name).cast("string"),
            F.lit("null"),
        )
        for field in rows.schema
    ]
    digest = F.sum(F.xxhash64(*strings).cast("decimal(38, 0)"))
    return collect(rows.agg(F.count("*"), digest))


def _sources(lab: Lab, suite: Suite) -> dict[str, str]:
    """Return the paths of the generated tables; generate them if they do not exist."""
    data_set = _data_set(suite, lab.settings)
    folder = LOCAL_CACHE / "generated" / data_set
    if not folder.exists():
        partial_folder = folder.with_suffix(".partial")
        shutil.rmtree(partial_folder, ignore_errors=True)
        partial_folder.mkdir(parents=True)
        suite.generate(partial_folder, lab.settings.tpc_scale_factor)
        partial_folder.rename(folder)
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    root = lab.uploaded(folder, data_set)
    return {name: f"{root}/{name}" for name in names}


def _generated(lab: Lab, suite: Suite, table: str) -> DataFrame:
    return lab.spark.read.parquet(_sources(lab, suite)[table])


def _load(lab: Lab, suite: Suite, layout: Layout, table: str, source: str, path: str) -> None:
    rows = lab.spark.read.parquet(source)
    deleted = _deleted(suite, table) if layout.deleted else None
    if deleted is not None and not lab.engine.is_delta:
        rows = rows.where(f"NOT ({deleted})")
    _write(lab, suite, layout, table, rows, path)
    if deleted is not None and lab.engine.is_delta:
        lab.spark.sql(f"DELETE FROM {lab.sql_name(path)} WHERE {deleted}")


def _write(lab: Lab, suite: Suite, layout: Layout, table: str, rows: DataFrame, path: str) -> None:
    date = suite.dates.get(table) if layout.by_date else None
    # One task writes each date; otherwise there would be a file of each date for each task.
    writer = (rows if date is None else rows.repartition(date)).write.format(lab.engine.source)
    if lab.engine.is_delta:
        writer = writer.option("delta.enableDeletionVectors", "true")
    (writer if date is None else writer.partitionBy(date)).save(path)


def _deleted(suite: Suite, table: str) -> str:
    return f"pmod(xxhash64({', '.join(suite.keys[table])}), 100) = 0"


def _data_set(suite: Suite, settings: Settings) -> str:
    return f"{suite.name}-{settings.tpc_scale_factor:g}"


def _in_order(query: str) -> tuple[int, str]:
    digits = re.sub(r"\D", "", query)
    return int(digits), query


def _generate_tpcds(folder: Path, scale_factor: float) -> None:
    subprocess.run(
        [_DUCKDB_PYTHON, "-c", _GENERATE_TPCDS, str(folder), f"{scale_factor:g}"], check=True
    )


def _generate_tpch(folder: Path, scale_factor: float) -> None:
    subprocess.run(
        [
            Path(sys.executable).parent / "tpchgen-cli",
            "parquet",
            f"--scale-factor={scale_factor:g}",
            "--parts=1",
            "--field-ids=false",
            "--quiet",
            f"--output-dir={folder}",
        ],
        check=True,
    )


TPCDS = Suite(
    "tpcds",
    "TPC-DS",
    "tpcds",
    _generate_tpcds,
    {
        "store_sales": "ss_sold_date_sk",
        "store_returns": "sr_returned_date_sk",
        "catalog_sales": "cs_sold_date_sk",
        "catalog_returns": "cr_returned_date_sk",
        "web_sales": "ws_sold_date_sk",
        "web_returns": "wr_returned_date_sk",
        "inventory": "inv_date_sk",
    },
    {
        "store_sales": ("ss_ticket_number", "ss_item_sk"),
        "store_returns": ("sr_ticket_number", "sr_item_sk"),
        "catalog_sales": ("cs_order_number", "cs_item_sk"),
        "catalog_returns": ("cr_order_number", "cr_item_sk"),
        "web_sales": ("ws_order_number", "ws_item_sk"),
        "web_returns": ("wr_order_number", "wr_item_sk"),
        "inventory": ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"),
    },
)

TPCH = Suite(
    "tpch",
    "TPC-H",
    "tpch",
    _generate_tpch,
    {"lineitem": "l_shipdate", "orders": "o_orderdate"},
    {"lineitem": ("l_orderkey", "l_linenumber"), "orders": ("o_orderkey",)},
)
