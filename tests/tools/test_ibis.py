"""Ibis creates, reads, replaces and drops tables in a session of Deltaic."""

from __future__ import annotations

from pathlib import Path

from tests.support.spark_process import SparkProcess

CODE = """
import ibis

con = ibis.pyspark.connect(spark)
rows = {"id": [1, 2, 3], "status": ["open", "paid", None]}
orders = con.create_table("ibis_orders", ibis.memtable(rows), format="delta")
result = [int(orders.filter(orders.id > 1).count().execute())]
con.insert("ibis_orders", ibis.memtable({"id": [4], "status": ["open"]}))

con.to_delta(con.table("ibis_orders"), path)
from delta.tables import DeltaTable
DeltaTable.forPath(spark, path).delete("id = 1")
copy = con.read_delta(path)
result.append(sorted(copy.filter(copy.status.notnull()).status.execute()))

replacement = con.table("ibis_orders").filter(ibis._.id < 3)
con.create_table("ibis_orders", replacement, format="delta", overwrite=True)
result.append(int(con.table("ibis_orders").count().execute()))
con.rename_table("ibis_orders", "ibis_renamed")
con.truncate_table("ibis_renamed")
result.append(int(con.table("ibis_renamed").count().execute()))
history = DeltaTable.forName(spark, "ibis_renamed").history()
result.append([row.operation for row in history.orderBy("version").collect()])
con.drop_table("ibis_renamed")
"""


def test_tables_are_created_replaced_by_themselves_and_dropped(
    tools: SparkProcess, tmp_path: Path
) -> None:
    *found, operations = tools.run(CODE, path=str(tmp_path / "copy"))
    assert found == [2, ["open", "paid"], 2, 0]
    assert operations[:3] == [
        "CREATE TABLE AS SELECT",
        "WRITE",
        "CREATE OR REPLACE TABLE AS SELECT",
    ]
