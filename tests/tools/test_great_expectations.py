"""Great Expectations, on tables that it reads and on DataFrames of Deltaic."""

from __future__ import annotations

from pathlib import Path

from tests.support.spark_process import SparkProcess

PRELUDE = """
import great_expectations as gx
from great_expectations import expectations

frame = lambda rows: spark.createDataFrame(rows, "id INT, status STRING").coalesce(1)
frame([[1, "open"], [2, None]]).write.format("delta").save(f"{path}/orders")
context = gx.get_context(mode="ephemeral")

def validate(batch):
    suite = [
        expectations.ExpectColumnValuesToBeUnique(column="id"),
        expectations.ExpectColumnValuesToNotBeNull(column="status"),
        expectations.ExpectTableRowCountToBeBetween(min_value=1, max_value=3),
    ]
    return [bool(batch.validate(each).success) for each in suite]
"""

#: A directory of tables, one of which is a batch; and the same table at an older version.
TABLES = """
source = context.data_sources.add_spark_filesystem("tables", base_directory=path)
def batches(name, **options):
    asset = source.add_directory_delta_asset(name, data_directory="orders", **options)
    return asset.add_batch_definition_whole_directory("all")
newest = batches("newest")
result = [validate(newest.get_batch())]
spark.sql(f"UPDATE delta.`{path}/orders` SET status = 'paid' WHERE id = 2")
spark.sql(f"INSERT INTO delta.`{path}/orders` VALUES (2, 'open')")
result.append(validate(newest.get_batch()))
result.append(validate(batches("old", version_as_of="0").get_batch()))
"""

DATAFRAME = """
from delta.tables import DeltaTable

source = context.data_sources.add_spark("dataframes")
batches = source.add_dataframe_asset("orders").add_batch_definition_whole_dataframe("all")
df = DeltaTable.forPath(spark, f"{path}/orders").toDF()
result = validate(batches.get_batch(batch_parameters={"dataframe": df}))
"""


def test_tables_are_validated_in_their_newest_and_in_an_older_version(
    tools: SparkProcess, tmp_path: Path
) -> None:
    found = tools.run(PRELUDE + TABLES, path=str(tmp_path))
    assert found == [[True, False, True], [False, True, True], [True, False, True]]


def test_dataframe_of_a_table_is_validated(tools: SparkProcess, tmp_path: Path) -> None:
    assert tools.run(PRELUDE + DATAFRAME, path=str(tmp_path)) == [True, False, True]
