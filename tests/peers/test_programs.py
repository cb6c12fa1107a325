"""The same programs in delta-spark and Deltaic: the same steps succeed and leave the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.programs import run_program, run_program_there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

_VARIANTS = (
    "spark.range(2).selectExpr('id', \"parse_json('[1, 2]') v\","
    " \"named_struct('x', parse_json('{}'), 'y', id) s\", \"array(parse_json('1')) a\")"
)
_TWO = "named_struct('p', 1, 'q', 'a')"

PROGRAMS = {
    "variants are saved": f"""
v = {_VARIANTS}
attempt(lambda: save(v).save(path))
attempt(lambda: save(v).mode("append").save(path))
attempt(lambda: save(v.select("id")).mode("append").save(path))
rows("SELECT id, to_json(v), to_json(s.x), s.y, to_json(a[0]) FROM {{t}}")
attempt(lambda: save(v).mode("overwrite").save(path))
rows("SELECT id, to_json(v), to_json(s.x), s.y, to_json(a[0]) FROM {{t}}")
""",
    "variants come by schema evolution": """
save(spark.range(2)).save(path)
v = spark.range(1).selectExpr("id", "parse_json('1') v")
attempt(lambda: save(v).mode("append").option("mergeSchema", "true").save(path))
rows("SELECT id, to_json(v) FROM {t}")
attempt(lambda: save(v).mode("overwrite").option("overwriteSchema", "true").save(path))
rows("SELECT id, to_json(v) FROM {t}")
""",
    "partitions beside variants": """
v = spark.range(1).selectExpr("id", "parse_json('1') v")
attempt(lambda: save(v).partitionBy("v").save(path))
attempt(lambda: save(v).partitionBy("id").save(path))
rows("SELECT id, to_json(v) FROM {t}")
""",
    "evolution with casts": """
query("CREATE TABLE {t} (a INT, s STRING) USING delta")
df = spark.range(2).selectExpr("id a", "cast(id as int) s", "id extra")
merging = lambda df: save(df).mode("append").option("mergeSchema", "true")
attempt(lambda: merging(df).saveAsTable(t))
attempt(lambda: save(df.withColumn("e1", F.lit(1))).mode("append").saveAsTable(t))
attempt(lambda: merging(df.withColumn("e1", F.lit(1))).insertInto(t))
rows()
attempt(lambda: df.toDF("x", "y", "z").withColumn("e11", F.lit(1)).withColumn("e12", F.lit(1))
    .write.option("mergeSchema", "true").insertInto(t))
rows()
attempt(lambda: df.withColumn("e2", F.lit(1)).writeTo(t).option("mergeSchema", "true").append())
rows()
attempt(lambda: df.writeTo(t).append())
attempt(lambda: df.withColumn("e3", F.lit(1)).writeTo(t).option("mergeSchema", "true")
    .overwrite(F.lit(True)))
rows()
attempt(lambda: df.withColumn("e4", F.lit(1)).writeTo(t).option("mergeSchema", "true")
    .overwritePartitions())
rows()
""",
    "evolution with values that do not fit": """
query("CREATE TABLE {t} (a INT, d DATE) USING delta")
merging = lambda sql: query(sql).writeTo(t).option("mergeSchema", "true").append()
attempt(lambda: merging("SELECT 10000000000L a, 'x' extra"))
attempt(lambda: merging("SELECT 'abc' a, 'x' extra"))
rows()
attempt(lambda: merging("SELECT '12' a, 'x' extra"))
attempt(lambda: merging("SELECT 1S a, '2020-01-01' d, 'x' extra2"))
rows()
""",
    "nested evolution with casts": """
query("CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: STRING>, arr ARRAY<STRUCT<x: INT>>)"
    " USING delta")
df = query("SELECT 1L id, named_struct('a', 2L, 'b', 3, 'c', 4) s,"
    " array(named_struct('x', 5L, 'y', 6)) arr")
attempt(lambda: save(df).mode("append").option("mergeSchema", "true").saveAsTable(t))
attempt(lambda: df.writeTo(t).option("mergeSchema", "true").append())
rows()
""",
    "void columns are kept": """
attempt("CREATE TABLE {t} (id INT, v VOID, s STRUCT<a: INT, n: VOID>) USING delta")
attempt("INSERT INTO {t} VALUES (1, null, named_struct('a', 1, 'n', null)), (2, null, null)")
attempt("INSERT INTO {t} (id) VALUES (3)")
attempt("INSERT INTO {t} VALUES (1, 5, null)")
attempt("INSERT INTO {t} SELECT 3")
attempt(lambda: save(query("SELECT 4 id")).mode("append").save(path))
attempt(lambda: save(query("SELECT 5 id, null v")).mode("append").save(path))
attempt(lambda: save(query("SELECT 6 id, 5 v")).mode("append").save(path))
attempt(lambda: query("SELECT 7 id, null v, null s").writeTo(t).append())
attempt(lambda: save(query("SELECT 8 id, null v, null s")).mode("append").insertInto(t))
rows()
rows("SELECT v, s.n, s.a FROM {t}")
rows("SELECT v FROM {t}")
rows("SELECT count(*), count(v), max(v), max(id) FROM {t} WHERE v IS NULL")
rows("SELECT id FROM {t} WHERE v IS NOT NULL OR s.n IS NOT NULL")
rows("SELECT v, count(*) FROM {t} GROUP BY v")
attempt("UPDATE {t} SET id = 10 WHERE id = 1")
attempt("UPDATE {t} SET v = null WHERE id = 2")
attempt("UPDATE {t} SET v = 5 WHERE id = 2")
attempt("DELETE FROM {t} WHERE id = 3")
attempt("DELETE FROM {t} WHERE v = 2")
source = "(SELECT 10 id, null v, named_struct('a', 7, 'n', null) s UNION ALL SELECT 77, null, null)"
attempt("MERGE INTO {t} t USING " + source + " s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
rows()
attempt(lambda: save(query("SELECT 9 id, 'x' v")).mode("append").save(path))
attempt(lambda: save(query("SELECT 9 id, 'x' v, named_struct('a', 1, 'n', 2) s")).mode("append")
    .option("mergeSchema", "true").save(path))
attempt(lambda: save(query("SELECT 11 id, null v, named_struct('a', 1, 'n', null) s"))
    .mode("append").option("mergeSchema", "true").save(path))
rows()
""",
    "void columns come with rows": """
attempt(lambda: save(spark.range(2).withColumn("v", F.lit(None))).save(path))
attempt(lambda: save(spark.range(2).withColumn("v", F.lit(None)).withColumn("w", F.lit(None)))
    .mode("append").option("mergeSchema", "true").save(path))
attempt(lambda: save(spark.range(2).withColumn("u", F.lit(None))).mode("append").save(path))
rows()
attempt(lambda: save(spark.range(2).withColumn("v", F.lit(7))).mode("append")
    .option("mergeSchema", "true").save(path))
rows()
make = "CREATE OR REPLACE TABLE {t} USING delta"
attempt(make + " AS SELECT 1 id, null v, named_struct('a', 1, 'n', null) s")
rows()
attempt(make + " AS SELECT 1 id, array(null) v")
attempt(make + " AS SELECT 1 id, map('k', null) v")
attempt(make + " AS SELECT 1 id, named_struct('n', null) v")
attempt(make + " AS SELECT null v")
attempt(make + " PARTITIONED BY (v) AS SELECT 1 id, null v")
rows()
merge = "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT %s) s ON t.id = s.id" \
    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
attempt(merge % "1 id, null m UNION ALL SELECT 2, null")
rows()
attempt(merge % "1 id, 7 m UNION ALL SELECT 3, 8")
rows()
attempt("ALTER TABLE {t} ADD COLUMN z VOID")
attempt("ALTER TABLE {t} ADD COLUMN y STRUCT<a: INT, v: VOID>")
rows()
attempt("ALTER TABLE {t} ALTER COLUMN z TYPE INT")
rows()
""",
    "void columns in every kind of table": """
attempt("CREATE TABLE {t} (v VOID, id INT, s STRUCT<v: VOID, x: INT>, p INT, w VOID) USING delta"
    " PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name',"
    " 'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true',"
    " 'delta.enableRowTracking' = 'true', 'delta.checkpointInterval' = '2',"
    " 'delta.checkpoint.writeStatsAsStruct' = 'true')")
attempt("INSERT INTO {t} VALUES (null, 1, named_struct('v', null, 'x', 1), 1, null),"
    " (null, 2, null, 2, null)")
attempt("UPDATE {t} SET id = 5 WHERE id = 2")
attempt("DELETE FROM {t} WHERE id = 1")
attempt("MERGE INTO {t} t USING"
    " (SELECT null v, 5 id, named_struct('v', null, 'x', 8) s, 2 p, null w) q"
    " ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
rows()
rows(spark.read.option("readChangeFeed", "true").option("startingVersion", 0).format("delta")
    .load(path).drop("_commit_timestamp"))
attempt("ALTER TABLE {t} RENAME COLUMN v TO u")
attempt("ALTER TABLE {t} DROP COLUMN w")
attempt("INSERT INTO {t} (id, p) VALUES (6, 2)")
rows()
""",
    "constraints in properties": """
conditions = lambda: rows(query("SHOW TBLPROPERTIES {t}").where("key LIKE 'delta.constraints.%'"))
attempt("CREATE TABLE {t} (id INT, s STRING) USING delta TBLPROPERTIES"
    " ('delta.constraints.pos' = 'id > 0', 'delta.constraints.short' = 'length(s) < 3')")
conditions()
attempt("INSERT INTO {t} VALUES (-1, 'a')")
attempt("INSERT INTO {t} VALUES (1, 'long')")
attempt("INSERT INTO {t} VALUES (1, 'a')")
attempt("ALTER TABLE {t} SET TBLPROPERTIES ('delta.constraints.other' = 'id > 5')")
attempt("CREATE OR REPLACE TABLE {t} USING delta TBLPROPERTIES ('delta.constraints.neg' = 'id < 0')"
    " AS SELECT 1 id")
attempt("CREATE OR REPLACE TABLE {t} USING delta TBLPROPERTIES ('delta.constraints.neg' = 'id < 0')"
    " AS SELECT -1 id")
conditions()
attempt("INSERT INTO {t} VALUES (2)")
attempt("ALTER TABLE {t} DROP CONSTRAINT neg")
attempt("INSERT INTO {t} VALUES (2)")
rows()
""",
    "constraints in options": """
conditions = lambda: rows(query("SHOW TBLPROPERTIES {t}").where("key LIKE 'delta.constraints.%'"))
positive = lambda ids: save(ids).option("delta.constraints.pos", "id >= 0")
attempt(lambda: positive(spark.range(-1, 2)).save(path))
attempt(lambda: positive(spark.range(2)).save(path))
attempt(lambda: save(spark.range(2)).option("delta.constraints.more", "id > 7").mode("append")
    .save(path))
conditions()
attempt(lambda: save(spark.range(-1, 2)).mode("append").save(path))
rows()
""",
    "constraints of the builders": """
if "deltaic" in spark.conf.get("spark.sql.extensions"):
    from deltaic import DeltaTable
    builder = lambda kind: getattr(DeltaTable, kind)(spark)
else:
    tables = spark._jvm.io.delta.tables.DeltaTable
    builder = lambda kind: getattr(tables, kind)(spark._jsparkSession)
conditions = lambda: rows(query("SHOW TBLPROPERTIES built").where("key LIKE 'delta.constraints.%'"))
def make(kind, **constraints):
    table = builder(kind).tableName("built").addColumn("id", "INT").addColumn("s", "STRING")
    for name, condition in constraints.items():
        table = table.property("delta.constraints." + name, condition)
    table.execute()
attempt(lambda: make("create", pos="id > 0", short="length(s) < 3"))
conditions()
attempt("INSERT INTO built VALUES (-1, 'a')")
attempt("INSERT INTO built VALUES (1, 'long')")
attempt("INSERT INTO built VALUES (1, 'a')")
attempt(lambda: make("createIfNotExists", neg="id < 0"))
conditions()
attempt(lambda: make("createOrReplace", neg="id < 0"))
conditions()
attempt("INSERT INTO built VALUES (1, 'a')")
attempt("INSERT INTO built VALUES (-1, 'long')")
rows("SELECT * FROM built")
query("DROP TABLE built")
""",
    "streams of tables with void columns": """
query("CREATE TABLE {t} (id INT, v VOID, s STRUCT<a: INT, n: VOID>) USING delta")
attempt("INSERT INTO {t} VALUES (1, null, named_struct('a', 1, 'n', null))")
attempt("INSERT INTO {t} VALUES (2, null, null)")
def stream(columns, **options):
    got = []
    batches = lambda batch, number: got.extend(str(row) for row in batch.collect())
    df = spark.readStream.options(**options).format("delta").load(path).selectExpr(*columns)
    query = df.writeStream.foreachBatch(batches).trigger(availableNow=True).start()
    query.awaitTermination()
    result.append([df.schema.simpleString(), sorted(got)])
attempt(lambda: stream(["*"]))
attempt(lambda: stream(["v"]))
attempt(lambda: stream(["s.n", "id"], maxFilesPerTrigger=1))
def copy():
    into = lambda batch, number: save(batch).mode("append").save(path + "-copy")
    df = spark.readStream.format("delta").load(path)
    df.writeStream.foreachBatch(into).trigger(availableNow=True).start().awaitTermination()
attempt(copy)
rows("SELECT * FROM delta.`{path}-copy`")
""",
    "tables of the catalog by Spark's interfaces": """
def shown(columns, others=""):
    query("CREATE TABLE shown (" + columns + ") USING delta " + others)
    namespace = spark._sc._gateway.new_array(spark._jvm.java.lang.String, 1)
    namespace[0] = "default"
    catalog = spark._jsparkSession.sessionState().catalogManager().currentCatalog()
    named = spark._jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, "shown")
    table = catalog.loadTable(named)
    result.append([table.schema().json(), [str(p) for p in table.partitioning()]])
    for c in table.columns():
        result.append([c.name(), c.dataType().json(), c.nullable(), c.comment(), c.metadataInJSON(),
            c.defaultValue() and c.defaultValue().getSql(), c.generationExpression(),
            str(c.identityColumnSpec())])
    query("DROP TABLE shown")
shown("id INT NOT NULL COMMENT 'the id', c CHAR(3), vc VARCHAR(5) COMMENT 'v',"
    " s STRUCT<a: CHAR(2), b: INT COMMENT 'inner'>, l ARRAY<VARCHAR(4)>, m MAP<STRING, CHAR(1)>",
    "COMMENT 'table' PARTITIONED BY (c)")
shown("id INT DEFAULT 3, s STRING DEFAULT 'x' COMMENT 'y', d DATE DEFAULT DATE'2020-01-01'",
    "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
shown("i BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), v INT,"
    " j BIGINT GENERATED BY DEFAULT AS IDENTITY, g INT GENERATED ALWAYS AS (v + 1) COMMENT 'gen'")
shown("id INT, s STRUCT<a: INT NOT NULL, b: STRING>",
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
shown("id INT, v VOID, ts TIMESTAMP_NTZ, va VARIANT")
""",
    "partitions by their paths": """
save(spark.range(6).selectExpr("id", "id % 2 p", "concat(id % 3, ' /b') q")).partitionBy("p", "q") \
    .save(path)
load = lambda part, **options: rows(spark.read.options(**options).format("delta").load(path + part))
for part in ["/p=1", "/p=1/q=2 %2Fb", "/p=1/", "/q=2 %2Fb", "/q=1 %2Fb/p=0", "/p=1@v0"]:
    load(part)
load("/p=1", versionAsOf=0)
for part in ["/p=7", "/id=1", "/nope=1", "/p=x", "/sub", "/P=1", "/sub/p=1"]:
    attempt(lambda: load(part))
save(spark.range(6, 8).selectExpr("id", "1L p", "'x' q")).mode("append").save(path)
load("/p=1")
load("/p=1", versionAsOf=0)
""",
    "insertInto that replaces matching rows": """
d = spark.sql("SELECT 1 id, 'new' a, 1 p")
on = {"replaceOn": "t.id = s.id", "targetAlias": "t"}
for n in (f"delta.`{path}`", f"delta.`{path}_p`"):
    part = " PARTITIONED BY (p)" if n.endswith("_p`") else ""
    spark.sql(f"CREATE TABLE {n} (id INT, a STRING, p INT) USING delta" + part)
    into = lambda df, **options: (
        spark.sql(f"INSERT OVERWRITE {n} VALUES (1, 'x', 1), (2, 'y', 1), (3, 'z', 2)"),
        save(df).mode("overwrite").options(**options).insertInto(n), rows(f"SELECT * FROM {n}"))
    attempt(lambda: into(d.alias("s"), **on))
    attempt(lambda: into(d.toDF("x", "y", "z").alias("s"), replaceOn="t.p = s.z", targetAlias="t"))
    attempt(lambda: into(d, replaceUsing="id"))
    attempt(lambda: into(d, replaceUsing="p, id"))
    attempt(lambda: into(d, replaceWhere="p = 1"))
    attempt(lambda: into(d.alias("s"), partitionOverwriteMode="dynamic", **on))
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    if part:
        attempt(lambda: into(d.alias("s"), **on))
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
""",
    "fields of structs in arrays go by place where columns are listed": f"""
query("CREATE TABLE {{t}} (id INT, s STRUCT<x: INT, y: STRING>,"
    " arr ARRAY<STRUCT<x: INT, y: STRING>>, m MAP<STRING, ARRAY<STRUCT<x: INT, y: STRING>>>)"
    " USING delta")
attempt("INSERT INTO {{t}} (id, arr) SELECT 1, array({_TWO})")
attempt("INSERT INTO {{t}} (arr, id, s) SELECT array(named_struct('y', 1, 'x', 'a')), 2, {_TWO}")
attempt("INSERT INTO {{t}} (m, id) SELECT map('k', array({_TWO})), 3")
attempt("INSERT INTO {{t}} (id, arr) SELECT 4, array(named_struct('p', 1L, 'q', 5))")
attempt("INSERT INTO {{t}} (id, arr) SELECT 8, array(named_struct('y', 'a', 'x', 1))")
attempt("INSERT INTO {{t}} (id, arr) SELECT 5, array(named_struct('p', 1))")
attempt("INSERT INTO {{t}} (id, arr) SELECT 6, array(named_struct('p', 1, 'q', 'a', 'r', 2))")
attempt("INSERT INTO {{t}} SELECT 7, {_TWO}, array({_TWO}), map('k', array({_TWO}))")
rows()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_engines_have_the_same_outcome(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, name: str
) -> None:
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    expected = run_program_there(delta_spark, PROGRAMS[name], theirs)
    assert run_program(spark, PROGRAMS[name], ours) == expected
    if Path(ours).exists():
        read = "rows('SELECT count(*) FROM {t}')"
        assert run_program_there(delta_spark, read, ours) == run_program(spark, read, ours)
