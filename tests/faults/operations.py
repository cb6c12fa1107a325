"""The operations that faults strike, and what is there once they are committed, by brute force."""

from __future__ import annotations

from tests.faults.conftest import BASE_ROWS, MANY_ROWS

_WRITE = (
    "spark.range(100, 130, 1, 3).selectExpr('id', \"concat('row ', id) AS v\")"
    ".write.format('delta').mode({mode!r}).save(table)"
)
_WRITTEN = [(n, f"row {n}") for n in range(100, 130)]
_DELETED = [row for row in BASE_ROWS if row[0] % 2]

_DELETE = "spark.sql(f'DELETE FROM delta.`{table}` WHERE id % 2 = 0')"

_UPDATE = "spark.sql(f\"UPDATE delta.`{table}` SET v = 'new' WHERE id % 2 = 0\")"
_UPDATED = [(n, v if n % 2 else "new") for n, v in BASE_ROWS]

_MERGE = (
    "spark.range(28, 32).createOrReplaceTempView('source')\n"
    'spark.sql(f"MERGE INTO delta.`{table}` t USING source s ON t.id = s.id'
    " WHEN MATCHED THEN UPDATE SET v = 'new' WHEN NOT MATCHED THEN INSERT (id, v)"
    " VALUES (s.id, 'new')\")"
)
_MERGED = [*BASE_ROWS[:28], *((n, "new") for n in range(28, 32))]

_REPLACE = (
    "spark.range(20, 25, 1, 1).selectExpr('id', \"'new' AS v\").write.format('delta')"
    ".mode('overwrite').option('replaceWhere', 'id >= 20').save(table)"
)
_REPLACED = [*BASE_ROWS[:20], *((n, "new") for n in range(20, 25))]

_CTAS = (
    'spark.sql(f"CREATE TABLE delta.`{table}` USING delta AS'
    " SELECT id, concat('row ', id) AS v FROM range(100, 130, 1, 3)\")"
)
_RTAS = _CTAS.replace("CREATE TABLE", "CREATE OR REPLACE TABLE")
_TRUNCATE = "spark.sql(f'TRUNCATE TABLE delta.`{table}`')"
_USING = (
    'spark.sql(f"INSERT INTO delta.`{table}` REPLACE USING (id)'
    " SELECT id, 'new' AS v FROM range(20, 25)\")"
)
_USED = [*BASE_ROWS[:20], *((n, "new") for n in range(20, 25)), *BASE_ROWS[25:]]
_DYNAMIC = (
    "spark.range(20, 23, 1, 1).selectExpr('id + 100 AS id', \"concat('row ', id) AS v\")"
    ".write.format('delta').mode('overwrite').option('partitionOverwriteMode', 'dynamic')"
    ".save(table)"
)
_OVERWRITTEN = [*BASE_ROWS[:20], *((n + 100, f"row {n}") for n in range(20, 23)), *BASE_ROWS[23:]]

_SAVE_AS = _WRITE.replace(".save(table)", ".option('path', table).saveAsTable('by_name')")
_CREATE_BY_NAME = "spark.sql(f\"CREATE TABLE by_name USING delta LOCATION '{table}'\")\n"
_ALTER = "spark.sql(f'ALTER TABLE delta.`{table}` ADD CONSTRAINT c CHECK (id >= 0)')"
_BACKFILL = (
    'spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES'
    " ('delta.enableRowTracking' = 'true')\")"
)

_RESTORE = (
    "spark.conf.set('spark.deltaic.vacuum."
    "enforceTimeTravelWithinDeletedFileRetentionDuration', 'false')\n"
    "spark.sql(f'RESTORE TABLE delta.`{table}` TO VERSION AS OF 3')"
)

#: Each task writes a part of the file, and another one joins them.
_OPTIMIZE = (
    "spark.conf.set('spark.deltaic.optimize.minTaskSize', '1b')\n"
    "spark.sql(f'OPTIMIZE delta.`{{table}}` {order}')"
)

#: Each operation: what it runs, the kind of table, and the rows that are there afterwards.
OPERATIONS: dict[str, tuple[str, str | None, list[tuple[int, str]]]] = {
    "append": (_WRITE.format(mode="append"), "vectors", BASE_ROWS + _WRITTEN),
    "overwrite": (_WRITE.format(mode="overwrite"), "plain", _WRITTEN),
    "create": (_WRITE.format(mode="error"), None, _WRITTEN),
    "CTAS": (_CTAS, None, _WRITTEN),
    "RTAS": (_RTAS, "vectors", _WRITTEN),
    "TRUNCATE": (_TRUNCATE, "vectors", []),
    "dynamic overwrite": (_DYNAMIC, "partitioned", _OVERWRITTEN),
    "saveAsTable, new": (_SAVE_AS.format(mode="error"), None, _WRITTEN),
    "saveAsTable": (
        _CREATE_BY_NAME + _SAVE_AS.format(mode="overwrite"),
        "vectors",
        _WRITTEN,
    ),
    "INSERT by name": (
        _CREATE_BY_NAME + "spark.sql(\"INSERT INTO by_name SELECT id, concat('row ', id)"
        ' FROM range(100, 130, 1, 3)")',
        "vectors",
        BASE_ROWS + _WRITTEN,
    ),
    "REPLACE USING": (_USING, "vectors", _USED),
    "delete": (_DELETE, "vectors", _DELETED),
    "delete many": (_DELETE, "many", [row for row in MANY_ROWS if row[0] % 2]),
    "rewrite": (_DELETE, "plain", _DELETED),
    "update": (_UPDATE, "vectors", _UPDATED),
    "merge": (_MERGE, "plain", _MERGED),
    "replaceWhere": (_REPLACE, "vectors", _REPLACED),
    "alter": (_ALTER, "plain", BASE_ROWS),
    "backfill": (_BACKFILL, "vectors", BASE_ROWS),
    "restore": (_RESTORE, "vectors", BASE_ROWS[:28]),
    "compaction": (_OPTIMIZE.format(order=""), "vectors", BASE_ROWS),
    "z-order": (_OPTIMIZE.format(order="ZORDER BY (v, id)"), "vectors", BASE_ROWS),
    "append v2": (_WRITE.format(mode="append"), "v2", BASE_ROWS + _WRITTEN),
    "append listed": (_WRITE.format(mode="append"), "listed", BASE_ROWS + _WRITTEN),
}
