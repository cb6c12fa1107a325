"""TPC-DS and TPC-H: data that is generated once and loaded by every engine, and queries.

Neither is in the repository: the queries come from the jar of Spark's tests, the data from DuckDB's
extension and from tpchgen-cli.
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
# Spark's queries name it as the specification does.
database.execute("ALTER TABLE customer RENAME c_last_review_date_sk TO c_last_review_date")
for (table,) in database.execute("SHOW TABLES").fetchall():
    (folder / table).mkdir()
    database.execute(f"COPY {table} TO '{folder / table}/data.parquet' (FORMAT parquet)")
database.close()
for file in folder.glob("generated.duckdb*"):
    file.unlink()
"""

# One run of a benchmark in quick mode is about whether it works.
_QUICK_QUERIES = 3


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark.

    Attributes
    ----------
    folder
        Where the jar of Spark's tests keeps the queries.
    dates
        The tables of facts, with the date that each is partitioned by where tables are.
    keys
        Of the same tables, the columns by which one row in a hundred is chosen to be deleted.
    """

    name: str
    title: str
    folder: str
    generate: Callable[[Path, float], None]
    dates: Mapping[str, str]
    keys: Mapping[str, tuple[str, ...]]

    def queries(self, settings: Settings) -> dict[str, str]:
        """Return the texts of the queries by name, in their order; those that the caller named."""
        [jar] = _QUERY_JARS.glob("spark-sql_*-tests.jar")
        with zipfile.ZipFile(jar) as files:
            texts = {
                found[1]: files.read(name).decode()
                for name in files.namelist()
                if (found := re.fullmatch(rf"{self.folder}/(q\w+)\.sql", name))
            }
        names = sorted(texts, key=_in_order)
        if settings.queries:
            names = [name for name in names if name in settings.queries]
        elif settings.quick:
            names = names[:_QUICK_QUERIES]
        return {name: texts[name] for name in names}


@dataclass(frozen=True, slots=True)
class Layout:
    """How the tables of a suite are kept."""

    by_date: bool = False
    deleted: bool = False

    @property
    def name(self) -> str:
        """Its part of the names of scenarios and tables."""
        return ("-by-date" if self.by_date else "") + ("-deleted" if self.deleted else "")

    @property
    def title(self) -> str:
        """How the report names it."""
        return ", ".join(
            (
                "partitioned by date" if self.by_date else "unpartitioned",
                "1 % deleted" if self.deleted else "no DV",
            )
        )


def prepare(lab: Lab, suite: Suite, layout: Layout) -> dict[str, str]:
    """Return the paths of the engine's own tables by name, made when missing."""
    paths = {}
    for table, source in _sources(lab, suite).items():
        of_facts = table in suite.dates
        kept = layout if of_facts else Layout()
        name = f"{_data_set(suite, lab.settings)}{kept.name}/{table}"
        paths[table] = lab.prepared(name, partial(_load, lab, suite, kept, table, source))
    return paths


def write(lab: Lab, suite: Suite, layout: Layout, table: str, path: str) -> None:
    """Write one table as it was generated."""
    _write(lab, suite, layout, table, _generated(lab, suite, table), path)


def tables(lab: Lab, suite: Suite) -> list[str]:
    """Return the names of the tables, which are generated if they are not there."""
    return list(_sources(lab, suite))


def create_views(lab: Lab, suite: Suite, paths: Mapping[str, str]) -> None:
    """Name the tables as queries do. Plain Parquet is told its schema and so reads no footer."""
    for table, path in paths.items():
        reader = lab.spark.read.format(lab.engine.source)
        if not lab.engine.is_delta:
            reader = reader.schema(_generated(lab, suite, table).schema)
        reader.load(path).createOrReplaceTempView(table)


def answer(lab: Lab, query: str) -> Answer:
    """Return the number of rows and a digest of them, in any order.

    Without a final LIMIT, of which any rows may be the right ones where the order has ties.
    Floating-point numbers are rounded, since their sum depends on the order.
    """
    frame = lab.spark.sql(re.sub(r"\blimit\s+\d+\s*;?\s*$", "", query, flags=re.IGNORECASE))
    columns = [f"c{i}" for i in range(len(frame.columns))]
    rows = frame.toDF(*columns)
    texts = [
        F.coalesce(
            F.format_string("%.6e", F.col(field.name) + F.lit(0.0))
            if isinstance(field.dataType, DoubleType | FloatType)
            else F.col(field.name).cast("string"),
            F.lit("null"),
        )
        for field in rows.schema
    ]
    digest = F.sum(F.xxhash64(*texts).cast("decimal(38, 0)"))
    return collect(rows.agg(F.count("*"), digest))


def _sources(lab: Lab, suite: Suite) -> dict[str, str]:
    """Return where the generated tables lie; generate them if they do not."""
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
    # Each date is written by one task, or there would be as many files of it as there are tasks.
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
