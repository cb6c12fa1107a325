"""Programs of processes that change rows of one table, or compact it, for a while."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

#: Adds one to fewer than ``most`` of the writer's rows until the time is up, by UPDATE or MERGE,
#: and says to which. Now and then it deletes one of them, or, with ``appends``, appends new ones.
#: No other process touches these rows, so any failure fails the test. With ``own_partition``, they
#: are the partition of the table with the writer's number as ``w``.
WORK = """
import random, time

chance = random.Random(seed)
mine = list(range(me, rows, writers))
added, deleted, appended = [], [], []
next_id = 1_000_000 * (me + 1)
own = f"w = {me} AND " if own_partition else ""
new_columns = ["id", "0L AS n", *([f"{me} AS w"] if own_partition else [])]
deadline = time.monotonic() + seconds
while time.monotonic() < deadline and len(mine) > 10:
    some = chance.sample(mine, chance.randrange(1, most))
    listed = ", ".join(map(str, some))
    kind = chance.random()
    if kind < 0.15:
        gone = some[0]
        spark.sql(f"DELETE FROM delta.`{table}` WHERE {own}id = {gone}")
        mine.remove(gone)
        deleted.append(gone)
    elif kind < 0.4:
        spark.sql(
            f"MERGE INTO delta.`{table}` t USING (SELECT explode(array({listed})) AS key) s"
            f" ON {own}t.id = s.key WHEN MATCHED THEN UPDATE SET n = n + 1"
        )
        added += some
    elif appends and kind < 0.6:
        new = list(range(next_id, next_id + 2))
        spark.range(new[0], new[-1] + 1, 1, 1).selectExpr(*new_columns).write.format(
            "delta"
        ).mode("append").save(table)
        next_id += 2
        mine += new
        appended += new
    else:
        spark.sql(f"UPDATE delta.`{table}` SET n = n + 1 WHERE {own}id IN ({listed})")
        added += some
result = [added, deleted, appended]
"""

#: Compacts until the time is up, now and then by ZORDER BY if ``orders``, and returns how often it
#: has committed. It never fails, but that ZORDER BY may lose to another compaction.
COMPACT = """
import random, time
from deltaic.exceptions import ConcurrentModificationError

result = 0
deadline = time.monotonic() + seconds
while time.monotonic() < deadline:
    order = "ZORDER BY (n, id)" if orders and random.random() < 0.5 else ""
    try:
        metrics = spark.sql(f"OPTIMIZE delta.`{table}` {order}").first().metrics
        result += metrics.numFilesRemoved > 0
    except ConcurrentModificationError as problem:
        assert order and "(OPTIMIZE)" in str(problem), problem
    # Meanwhile enough small files are written for auto compaction to begin.
    time.sleep(1.5)
"""


#: Runs one of the statements after the other until the time is up, and returns how often each has
#: rewritten files; or deletes the files that have not been in the table for 20 seconds, again and
#: again. Only another statement that moves the same rows makes one of them fail.
MAINTAIN = """
import itertools, time
from collections import Counter
from deltaic import DeltaTable
from deltaic.exceptions import ConcurrentModificationError

spark.conf.set("spark.deltaic.retentionDurationCheck.enabled", "false")
done = Counter()
deadline = time.monotonic() + seconds
for statement in itertools.cycle(statements or ["VACUUM"]):
    if time.monotonic() > deadline and (done or not statements):
        break
    if vacuums:
        DeltaTable.forPath(spark, table).vacuum(20 / 3600)
        done["VACUUM"] += 1
    else:
        try:
            named = statement.replace("{t}", f"delta.`{table}`")
            done[statement] += spark.sql(named).first().metrics.numFilesRemoved > 0
        except ConcurrentModificationError as problem:
            assert "(OPTIMIZE)" in str(problem) or "(REORG)" in str(problem), problem
    time.sleep(5 if vacuums else 1)
result = dict(+done)
"""


def expected_rows(results: Sequence[Any], rows: int) -> dict[int, int]:
    """Return the value of each row, given the results of the writers."""
    added = Counter(i for result in results for i in result[0])
    deleted = {i for result in results for i in result[1]}
    appended = [i for result in results for i in result[2]]
    return {i: added[i] for i in [*range(rows), *appended] if i not in deleted}
