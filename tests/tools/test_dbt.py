"""dbt-spark by its method ``session``, with our jar: models, snapshots and contracts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deltaic.session import spark_settings
from tests.support import log
from tests.support.delta_rs import by_query
from tests.support.spark_process import COMMON_SETTINGS, FOREIGN_VARIABLES

FILES = {
    "dbt_project.yml": """
name: shop
version: "1.0"
profile: shop
models: {+file_format: delta}
seeds: {+file_format: delta, +column_types: {day: string}}
snapshots: {+file_format: delta}
flags: {send_anonymous_usage_stats: false}
""",
    "models/orders.sql": """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id',
          on_schema_change='append_new_columns',
          tblproperties={'delta.enableDeletionVectors': 'true'}) }}
SELECT id, status, amount {% if var('with_day', false) %}, day {% endif %}
FROM {{ ref('raw_orders') }}
{% if is_incremental() %} WHERE day >= (SELECT '2024-01-02') {% endif %}
""",
    "models/by_day.sql": """
{{ config(materialized='incremental', incremental_strategy='insert_overwrite',
          partition_by=['day']) }}
SELECT id, amount, day FROM {{ ref('raw_orders') }}
{% if is_incremental() %} WHERE day = '2024-01-02' {% endif %}
""",
    "models/appended.sql": """
{{ config(materialized='incremental', incremental_strategy='append') }}
SELECT count(*) AS orders FROM {{ ref('orders') }}
""",
    "models/totals.sql": """
{{ config(materialized='table') }}
SELECT status, CAST(sum(amount) AS BIGINT) AS amount FROM {{ ref('orders') }} GROUP BY status
""",
    "models/open_orders.sql": """
{{ config(materialized='view') }}
SELECT * FROM {{ ref('orders') }} WHERE status = 'open'
""",
    "models/schema.yml": """
models:
  - name: totals
    config: {contract: {enforced: true}}
    constraints: [{type: check, expression: "amount >= 0", name: positive, columns: [amount]}]
    columns:
      - name: status
        data_type: string
        description: where the order is
        data_tests: [unique, not_null]
      - name: amount
        data_type: bigint
  - name: orders
    columns:
      - name: id
        data_tests: [unique, not_null]
""",
    "snapshots/orders_snapshot.sql": """
{% snapshot orders_snapshot %}
{{ config(strategy='check', unique_key='id', check_cols=['status'], target_schema='shop') }}
SELECT id, status FROM {{ ref('orders') }}
{% endsnapshot %}
""",
}

FIRST = "id,status,amount,day\n1,open,10,2024-01-01\n2,open,20,2024-01-02\n"
SECOND = "id,status,amount,day\n1,open,10,2024-01-01\n2,paid,25,2024-01-02\n3,open,5,2024-01-02\n"


class Project:
    """A dbt project, whose metastore and warehouse are in its folder."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self._dbt = Path(python).parent / "dbt"
        self._python = python
        for name, text in FILES.items():
            self.write(name, text)
        settings = {
            **COMMON_SETTINGS,
            **spark_settings(),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.driver.memory": "1g",
            "spark.master": "local[2]",
        }
        output = {
            "type": "spark",
            "method": "session",
            "schema": "shop",
            "host": "NA",
            "server_side_parameters": settings,
        }
        self.write(
            "profiles.yml", json.dumps({"shop": {"target": "dev", "outputs": {"dev": output}}})
        )

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str, fails: bool = False) -> str:
        environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
        environment |= {"PYSPARK_PYTHON": self._python, "DBT_PROFILES_DIR": str(self.folder)}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(
            [str(self._dbt), "--no-use-colors", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert bool(done.returncode) == fails, done.stdout + done.stderr
        return done.stdout

    def table(self, name: str) -> str:
        return str(self.folder / "warehouse" / "shop.db" / name)

    def rows(self, name: str) -> list[Any]:
        return by_query(self.table(name))


@pytest.fixture(scope="module")
def project(tools_python: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that was built twice, the second time with other orders."""
    found = Project(tmp_path_factory.mktemp("dbt"), tools_python)
    found.write("seeds/raw_orders.csv", FIRST)
    found.run("build")
    assert sorted(found.rows("orders")) == [(1, "open", 10), (2, "open", 20)]
    found.write("seeds/raw_orders.csv", SECOND)
    found.run("build")
    return found


def test_incremental_models_merge_append_and_replace_partitions(project: Project) -> None:
    assert sorted(project.rows("orders")) == [(1, "open", 10), (2, "paid", 25), (3, "open", 5)]
    assert log.commit_info(project.table("orders"))["operation"] == "MERGE"
    assert sorted(project.rows("by_day")) == [
        (1, 10, "2024-01-01"),
        (2, 25, "2024-01-02"),
        (3, 5, "2024-01-02"),
    ]
    assert sorted(project.rows("appended")) == [(2,), (3,)]


def test_snapshot_has_the_older_rows(project: Project) -> None:
    rows = [(row[0], row[1], row[-1] is None) for row in project.rows("orders_snapshot")]
    assert sorted(rows) == [
        (1, "open", True),
        (2, "open", False),
        (2, "paid", True),
        (3, "open", True),
    ]


def test_table_has_the_constraints_of_its_contract(project: Project) -> None:
    assert sorted(project.rows("totals")) == [("open", 15), ("paid", 25)]
    configuration = log.metadata(project.table("totals"))["configuration"]
    assert configuration["delta.constraints.positive"].strip("()") == "amount >= 0"


def test_row_that_breaks_a_contract_fails_the_model(project: Project) -> None:
    project.write("seeds/raw_orders.csv", SECOND.replace("3,open,5", "3,lost,-5"))
    output = project.run("build", "--select", "+totals", fails=True)
    assert "positive" in output
    project.write("seeds/raw_orders.csv", SECOND)


def test_new_column_is_added(project: Project) -> None:
    project.run("run", "--select", "orders", "--vars", "{with_day: true}")
    rows = {row[0]: row[3] for row in project.rows("orders")}
    assert rows == {1: None, 2: "2024-01-02", 3: "2024-01-02"}


def test_catalog_has_the_tables_and_their_columns(project: Project) -> None:
    project.run("docs", "generate")
    catalog = json.loads((project.folder / "target" / "catalog.json").read_text())
    node = catalog["nodes"]["model.shop.totals"]
    assert [column["type"] for column in node["columns"].values()] == ["string", "bigint"]
    assert project.run("test").count("PASS") > 3
