"""SQLMesh's models of all kinds, in tables of Deltaic."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from deltaic.session import spark_settings
from tests.support.spark_process import COMMON_SETTINGS, FOREIGN_VARIABLES

#: The models of the project `shop`, by name.
MODELS = {
    "raw": "kind SEED (path '../seeds/raw.csv'),"
    " columns (id INT, status STRING, amount INT, day DATE)); ",
    "orders": "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id), table_format delta);\n"
    "SELECT id, status, amount FROM shop.raw",
    "by_day": "kind INCREMENTAL_BY_TIME_RANGE (time_column day), table_format delta);\n"
    "SELECT day, CAST(sum(amount) AS BIGINT) AS amount FROM shop.raw\n"
    "WHERE day BETWEEN @start_ds AND @end_ds GROUP BY day",
    "totals": "kind FULL, table_format delta, audits (not_null(columns := (status))));\n"
    "SELECT status, CAST(count(*) AS BIGINT) AS n FROM shop.orders GROUP BY status",
    "statuses": "kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [status]),"
    " table_format delta);\nSELECT id, status FROM shop.raw",
}
SEED = "id,status,amount,day\n1,open,10,2024-01-01\n2,paid,20,2024-01-01\n3,open,30,2024-01-02\n"

QUERY = """
import sys
from sqlmesh import Context
context = Context(paths=sys.argv[1])
rows = context.fetchdf(sys.argv[2]).astype(str).values.tolist()
print("rows", sorted(rows))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    for each in ("models", "seeds"):
        (folder / each).mkdir(parents=True)
    for name, text in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(f"MODEL (name shop.{name}, {text}\n")
    (folder / "seeds" / "raw.csv").write_text(SEED)
    settings = {
        **COMMON_SETTINGS,
        **spark_settings(),
        "spark.master": "local[2]",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        ),
    }
    state = {"type": "duckdb", "database": str(folder / "state.db")}
    config = {
        "gateways": {
            "spark": {
                "connection": {"type": "spark", "config": settings},
                "state_connection": state,
            }
        },
        "default_gateway": "spark",
        "model_defaults": {"dialect": "spark", "start": "2024-01-01"},
        "disable_anonymized_analytics": True,
    }
    # JSON is YAML, too.
    (folder / "config.yaml").write_text(json.dumps(config))
    return folder


def run(python: str, project: Path, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
    environment |= {"PYSPARK_PYTHON": python, "HOME": str(project), "PYTHONPATH": ""}
    done = subprocess.run(
        [python, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def plan(python: str, project: Path) -> None:
    sqlmesh = str(Path(python).parent / "sqlmesh")
    run(python, project, sqlmesh, "plan", "--auto-apply", "--no-prompts")


def rows(python: str, project: Path, query: str) -> str:
    [line] = [
        line
        for line in run(python, project, "-c", QUERY, str(project), query).splitlines()
        if line.startswith("rows ")
    ]
    return line.removeprefix("rows ")


def test_models_of_all_kinds_are_built_and_built_again(tools_python: str, project: Path) -> None:
    plan(tools_python, project)
    changed = SEED.replace("1,open,10", "1,paid,10") + "4,open,70,2024-01-03\n"
    (project / "seeds" / "raw.csv").write_text(changed)
    plan(tools_python, project)
    query = (
        "SELECT 'total' AS what, status, n FROM shop.totals"
        " UNION ALL SELECT 'day', CAST(day AS STRING), amount FROM shop.by_day"
        " UNION ALL SELECT 'order', status, id FROM shop.orders"
        " UNION ALL SELECT 'current', status, id FROM shop.statuses WHERE valid_to IS NULL"
    )
    statuses = [["1", "paid"], ["2", "paid"], ["3", "open"], ["4", "open"]]
    # A plan does not restate a dimension of type 2: it keeps the rows of its interval.
    first = [["1", "open"], ["2", "paid"], ["3", "open"]]
    expected = [
        *(["order", status, number] for number, status in statuses),
        *(["current", status, number] for number, status in first),
        *(["day", f"2024-01-0{day}", amount] for day, amount in ((1, "30"), (2, "30"), (3, "70"))),
        *(["total", status, "2"] for status in ("open", "paid")),
    ]
    assert rows(tools_python, project, query) == str(sorted(expected))
