"""Programs that two engines run step by step, to be held against each other.

A program is Python code of a few steps. It sees ``spark``, ``path``, the name ``t`` of the table at
that path, and these functions::

    attempt(f)  run f, or a statement in which ``{t}`` is the table's name, and note whether the
                engine refuses it; a mistake in the program itself is raised
    rows(sql)   note the columns and rows of a query, by default of the whole table
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

_FUNCTIONS = """
from pyspark.sql import functions as F
result = []
t = f"delta.`{path}`"
save = lambda df: df.write.format("delta")
query = lambda sql: spark.sql(sql.replace("{t}", t).replace("{path}", path))

def attempt(step):
    try:
        query(step).collect() if isinstance(step, str) else step()
        result.append("done")
    except Exception as problem:
        mistakes = (NameError, SyntaxError, AttributeError, TypeError)
        # Refusals of Spark and of Deltaic may be of these classes, too.
        if isinstance(problem, mistakes) and not hasattr(problem, "getCondition"):
            raise
        result.append("refused")

def rows(sql="SELECT * FROM {t}"):
    df = query(sql) if isinstance(sql, str) else sql
    result.append([df.schema.simpleString(), sorted(str(row) for row in df.collect())])
"""


def run_program(spark: SparkSession, program: str, path: str) -> Any:
    """Run a program here and return what its steps came to."""
    scope: dict[str, Any] = {"spark": spark, "path": path}
    exec(_FUNCTIONS + program, scope)
    return scope["result"]


def run_program_there(peer: SparkProcess, program: str, path: str) -> Any:
    """Run a program in another process and return what its steps came to."""
    return peer.run(_FUNCTIONS + program, path=path)
