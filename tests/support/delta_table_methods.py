"""Every method of `DeltaTable`, as code that runs in a session of any kind.

The code sees ``spark``, `DeltaTable`, the `path` of a table, the ``name`` of a table that does not
exist, and what `PRELUDE` defines. It assigns what it finds to ``result``.
"""

from __future__ import annotations

from collections.abc import Mapping

#: A table with deletion vectors of the ids 0 to 9, in one file.
PRELUDE = """
from pyspark.sql.functions import col, expr
ids = lambda df: sorted(row[0] for row in df.select("id").collect())
operations = lambda table: [row.operation for row in table.history().collect()]
rows = spark.range(10).coalesce(1).write.format("delta")
rows.option("delta.enableDeletionVectors", "true").save(path)
table = DeltaTable.forPath(spark, path)
"""

#: What the clients of delta-spark and Deltaic run, by name: the code and what it finds.
METHODS: Mapping[str, tuple[str, object]] = {
    "toDF": ("result = ids(table.toDF())", list(range(10))),
    "toDF, newest version": (
        "df = table.toDF(); before = df.count(); table.delete('id > 2')\n"
        "result = [before, df.count(), table.toDF().count()]",
        [10, 3, 3],
    ),
    "forName": (
        "spark.range(3).write.format('delta').saveAsTable(name)\n"
        "result = ids(DeltaTable.forName(spark, name).toDF())",
        [0, 1, 2],
    ),
    "forName of a path": (
        "result = ids(DeltaTable.forName(spark, f'delta.`{path}`').toDF())",
        list(range(10)),
    ),
    "isDeltaTable": (
        "result = [bool(DeltaTable.isDeltaTable(spark, path)),"
        " bool(DeltaTable.isDeltaTable(spark, path + '/x'))]",
        [True, False],
    ),
    "delete": ("table.delete('id % 2 = 1'); result = ids(table.toDF())", [0, 2, 4, 6, 8]),
    "changes one after another, with reads in between": (
        "found = []\n"
        "for old, new in ((0, 10), (10, 20), (20, 30)):\n"
        "    found.append(ids(table.toDF())[-2:])\n"
        "    table.update(f'id = {old}', {'id': str(new)})\n"
        "aliased = table.alias('t'); aliased.toDF().schema; aliased.delete('t.id = 30')\n"
        "source = spark.range(1, 3).alias('s'); aliased.toDF().schema\n"
        "merge = aliased.merge(source, 't.id = s.id')\n"
        "merge.whenMatchedUpdate(set={'id': '-s.id'}).execute(); aliased.toDF().schema\n"
        "aliased.delete('t.id < 0'); result = [found, ids(table.toDF()), operations(table)]",
        [
            [[8, 9], [9, 10], [9, 20]],
            [3, 4, 5, 6, 7, 8, 9],
            ["DELETE", "MERGE", "DELETE", "UPDATE", "UPDATE", "UPDATE", "WRITE"],
        ],
    ),
    "delete by a Column": (
        "table.delete(col('id') > 3); result = [ids(table.toDF()), operations(table)]",
        [[0, 1, 2, 3], ["DELETE", "WRITE"]],
    ),
    "delete all": ("table.delete(); result = ids(table.toDF())", []),
    "delete by an alias": (
        "table.alias('t').delete('t.id > 0'); result = ids(table.toDF())",
        [0],
    ),
    "update": (
        "table.update('id > 7', {'id': 'id + 100'}); result = ids(table.toDF())[-3:]",
        [7, 108, 109],
    ),
    "update by Columns": (
        "table.update(col('id') < 9, {'id': -col('id')}); result = ids(table.toDF())[-2:]",
        [0, 9],
    ),
    "update all": ("table.update(set={'id': '1'}); result = set(ids(table.toDF())) == {1}", True),
    "update of a nested field": (
        "source = spark.sql(\"SELECT named_struct('x.y', 1, 'z', 2) AS s\")\n"
        "source.write.format('delta').save(path + '/nested')\n"
        "nested = DeltaTable.forPath(spark, path + '/nested')\n"
        "nested.update(set={'s.`x.y`': 's.z + 5'})\n"
        "result = nested.toDF().first().s.asDict()",
        {"x.y": 7, "z": 2},
    ),
    "merge": (
        "source = spark.range(8, 12).alias('s')\n"
        "merge = table.alias('t').merge(source, 't.id = s.id')\n"
        "merge = merge.whenMatchedUpdate(set={'id': 's.id + 100'}).whenNotMatchedInsertAll()\n"
        "changed = merge.execute().first()\n"
        "result = [changed.num_updated_rows, changed.num_inserted_rows, ids(table.toDF())[-5:]]",
        [2, 2, [7, 10, 11, 108, 109]],
    ),
    "merge of all clauses": (
        "source = spark.createDataFrame([(1, 'u'), (2, 'd'), (30, 'i'), (31, 'x')],"
        " 'id BIGINT, what STRING').alias('s')\n"
        "merge = table.alias('t').merge(source, col('t.id') == col('s.id'))\n"
        "merge = merge.whenMatchedUpdate(\"s.what = 'u'\", {'id': col('t.id') + 50})\n"
        "merge = merge.whenMatchedDelete(col('s.what') == 'd')\n"
        "merge = merge.whenNotMatchedInsert(\"s.what = 'i'\", {'id': 's.id'})\n"
        "merge = merge.whenNotMatchedBySourceUpdate('t.id = 4', {'id': '-t.id'})\n"
        "merge = merge.whenNotMatchedBySourceDelete('t.id > 5')\n"
        "merge.execute(); result = ids(table.toDF())",
        [-4, 0, 3, 5, 30, 51],
    ),
    "merge with schema evolution": (
        "source = spark.range(12).selectExpr('id', 'id * 2 AS twice').alias('s')\n"
        "merge = table.alias('t').merge(source, 't.id = s.id').whenMatchedUpdateAll()\n"
        "merge.whenNotMatchedInsertAll().withSchemaEvolution().execute()\n"
        "df = spark.read.format('delta').load(path)\n"
        "result = [df.columns, df.agg({'twice': 'sum'}).first()[0]]",
        [["id", "twice"], 132],
    ),
    "merge of the table with itself": (
        "source = table.toDF().where('id < 3').alias('s')\n"
        "table.alias('t').merge(source, 't.id = s.id').whenMatchedDelete().execute()\n"
        "result = ids(table.toDF())",
        [3, 4, 5, 6, 7, 8, 9],
    ),
    "history": (
        "table.delete('id = 1')\n"
        "result = [[r.version, r.operation, sorted(r.operationParameters)]"
        " for r in table.history(1).collect()] + [table.history().count()]",
        [[1, "DELETE", ["predicate"]], 2],
    ),
    "detail": (
        "row = table.detail().first(); result = [row.format, row.numFiles, row.name,"
        " row.location == 'file:' + path, sorted(row.tableFeatures)]",
        ["delta", 1, None, True, ["appendOnly", "deletionVectors", "invariants"]],
    ),
    "detail by name": (
        "spark.range(3).write.format('delta').saveAsTable(name)\n"
        "result = DeltaTable.forName(spark, name).detail().first().name.split('.')[:2]",
        ["spark_catalog", "default"],
    ),
    "optimize": (
        "spark.range(10, 20).coalesce(1).write.format('delta').mode('append').save(path)\n"
        "row = table.optimize().executeCompaction().first()\n"
        "result = [row.metrics['numFilesRemoved'], row.metrics['numFilesAdded'],"
        " table.detail().first().numFiles]",
        [2, 1, 1],
    ),
    "optimize where": (
        "table.optimize().where('true').where('true').executeCompaction()\n"
        "result = operations(table)",
        ["WRITE"],
    ),
    "z-order": (
        "row = table.optimize().executeZOrderBy('id').first()\n"
        "result = [row.metrics['zOrderStats']['strategyName'], operations(table)]",
        ["all", ["OPTIMIZE", "WRITE"]],
    ),
    "vacuum": (
        "table.vacuum(); table.vacuum(1000); result = operations(table)[:4]",
        ["VACUUM END", "VACUUM START", "VACUUM END", "VACUUM START"],
    ),
    "restoreToVersion": (
        "table.delete('id > 2'); row = table.restoreToVersion(0).first()\n"
        "result = [row.num_restored_files, ids(table.toDF()) == list(range(10))]",
        [1, True],
    ),
    "restoreToTimestamp": (
        "row = table.restoreToTimestamp('2100-01-01').first()\n"
        "result = [row.num_of_files_after_restore, row.num_removed_files]",
        [1, 0],
    ),
    "clone": (
        "copy = table.clone(name, isShallow=True, properties={'delta.appendOnly': 'true'})\n"
        "found = DeltaTable.forName(spark, name).detail().first()\n"
        "result = [ids(copy.toDF()), found.properties['delta.appendOnly'], found.numFiles]",
        [list(range(10)), "true", 1],
    ),
    "cloneAtVersion": (
        "table.delete('id > 2')\n"
        "copy = table.cloneAtVersion(0, f'delta.`{path}-clone`')\n"
        "table.cloneAtVersion(1, f'delta.`{path}-clone`', replace=True)\n"
        "result = [ids(copy.toDF()), len(operations(copy))]",
        [[0, 1, 2], 2],
    ),
    "cloneAtTimestamp": (
        "at = str(table.history(1).first().timestamp)\n"
        "table.cloneAtTimestamp(at, name)\n"
        "result = spark.table(name).count()",
        10,
    ),
    "convertToDelta": (
        "spark.range(5).write.parquet(path + '-files')\n"
        "found = DeltaTable.convertToDelta(spark, f'parquet.`{path}-files`')\n"
        "result = [ids(found.toDF()), operations(found)]",
        [[0, 1, 2, 3, 4], ["CONVERT"]],
    ),
    "convertToDelta with partitions": (
        "from pyspark.sql.types import StructType, IntegerType\n"
        "files = spark.range(4).selectExpr('id', 'cast(id % 2 AS INT) AS p')\n"
        "for end in ('a', 'b'):\n"
        "    files.write.partitionBy('p').parquet(path + end)\n"
        "first = DeltaTable.convertToDelta(spark, f'parquet.`{path}a`', 'p INT')\n"
        "schema = StructType().add('p', IntegerType())\n"
        "second = DeltaTable.convertToDelta(spark, f'parquet.`{path}b`', schema)\n"
        "result = [first.detail().first().partitionColumns, second.toDF().dtypes]",
        [["p"], [["id", "bigint"], ["p", "int"]]],
    ),
    "convertToDelta of a table": (
        "spark.range(5).write.format('parquet').saveAsTable(name)\n"
        "result = ids(DeltaTable.convertToDelta(spark, name).toDF())",
        [0, 1, 2, 3, 4],
    ),
    "create": (
        "from pyspark.sql.types import LongType, StructType\n"
        "builder = DeltaTable.create(spark).tableName(name).comment('of orders')\n"
        "builder = builder.addColumn('id', 'BIGINT', nullable=False, comment='a key')\n"
        "builder = builder.addColumn('day', 'DATE')\n"
        "builder = builder.addColumn('year', 'INT', generatedAlwaysAs='year(day)')\n"
        "builder = builder.addColumns(StructType().add('n', LongType()))\n"
        "builder = builder.partitionedBy('year').property('delta.checkpointInterval', '5')\n"
        "row = builder.execute().detail().first()\n"
        "columns = spark.table(name).schema\n"
        "result = [row.description, row.partitionColumns, row.properties, columns.names,"
        " columns['id'].nullable, columns['id'].metadata['comment']]",
        [
            "of orders",
            ["year"],
            {"delta.checkpointInterval": "5"},
            ["id", "day", "year", "n"],
            False,
            "a key",
        ],
    ),
    "create with an identity column": (
        "numbers = IdentityGenerator(start=5, step=5)\n"
        "builder = DeltaTable.create(spark).location(path + '-new').addColumn('v', 'STRING')\n"
        "builder = builder.addColumn('id', 'BIGINT', generatedAlwaysAs=numbers)\n"
        "builder.clusterBy('v').execute()\n"
        "where = f'delta.`{path}-new`'\n"
        "spark.sql(f\"INSERT INTO {where} (v) VALUES ('a')\")\n"
        "result = [ids(spark.table(where)),"
        " DeltaTable.forPath(spark, path + '-new').detail().first().clusteringColumns]",
        [[5], ["v"]],
    ),
    "createIfNotExists": (
        "found = DeltaTable.createIfNotExists(spark).location(path).execute()\n"
        "result = [ids(found.toDF()) == list(range(10)), operations(found)]",
        [True, ["WRITE"]],
    ),
    "replace": (
        "found = DeltaTable.replace(spark).location(path).addColumn('n', 'INT').execute()\n"
        "result = [found.toDF().columns, operations(found)[0]]",
        [["n"], "REPLACE TABLE"],
    ),
    "createOrReplace": (
        "builder = DeltaTable.createOrReplace(spark).location(path).addColumn('n', 'INT')\n"
        "result = operations(builder.execute())[0]",
        "CREATE OR REPLACE TABLE",
    ),
    "generate": (
        "spark.range(4).write.format('delta').save(path + '-plain')\n"
        "DeltaTable.forPath(spark, path + '-plain').generate('symlink_format_manifest')\n"
        "import os; result = os.path.exists(path + '-plain/_symlink_format_manifest')",
        True,
    ),
    "upgradeTableProtocol": (
        "spark.range(4).write.format('delta').save(path + '-plain')\n"
        "plain = DeltaTable.forPath(spark, path + '-plain'); plain.upgradeTableProtocol(3, 7)\n"
        "row = plain.detail().first(); result = [row.minReaderVersion, row.minWriterVersion]",
        [3, 7],
    ),
    "addFeatureSupport": (
        "table.addFeatureSupport('domainMetadata')\n"
        "result = 'domainMetadata' in table.detail().first().tableFeatures",
        True,
    ),
    "dropFeatureSupport": (
        "table.addFeatureSupport('domainMetadata'); table.dropFeatureSupport('domainMetadata')\n"
        "result = 'domainMetadata' in table.detail().first().tableFeatures",
        False,
    ),
}

#: Methods and arguments that delta-spark does not have.
MORE_METHODS: Mapping[str, tuple[str, object]] = {
    "columns of toDF in conditions": (
        "table.delete(table.toDF()['id'] == 3)\n"
        "table.update(table.toDF()['id'] > 7, {'id': table.toDF()['id'] + 10})\n"
        "result = ids(table.toDF())",
        [0, 1, 2, 4, 5, 6, 7, 18, 19],
    ),
    "settings of the file system": (
        "settings = {'fs.file.impl.disable.cache': 'true'}\n"
        "other = DeltaTable.forPath(spark, path, settings)\n"
        "other.alias('t').delete('t.id > 3'); other.update(set={'id': 'id + 1'})\n"
        "result = [ids(other.toDF()), len(operations(other))]",
        [[1, 2, 3, 4], 3],
    ),
    "merge, once": (
        "merge = table.alias('t').merge(spark.range(8, 12).alias('s'), 't.id = s.id')\n"
        "merge = merge.whenNotMatchedInsertAll().idempotent('nightly', 1)\n"
        "result = [merge.execute().first().num_inserted_rows for _ in range(2)]",
        [2, 0],
    ),
    "optimize, full": (
        "builder = DeltaTable.createOrReplace(spark).location(path).addColumn('id', 'BIGINT')\n"
        "clustered = builder.clusterBy('id').execute()\n"
        "spark.range(9).write.format('delta').mode('append').save(path)\n"
        "clustered.optimize().executeCompaction(full=True)\n"
        "result = [operations(clustered)[0], ids(clustered.toDF()) == list(range(9))]",
        ["OPTIMIZE", True],
    ),
    "optimize of a list": (
        "result = table.optimize().executeZOrderBy(['id']).first().metrics.numFilesAdded",
        1,
    ),
    "purge": (
        "table.delete('id = 3'); table.purge('true')\nresult = operations(table)",
        ["REORG", "DELETE", "WRITE"],
    ),
    "vacuum, dry run": (
        "spark.conf.set('spark.deltaic.retentionDurationCheck.enabled', 'false')\n"
        "spark.range(3).write.format('delta').mode('overwrite').save(path)\n"
        "import time; time.sleep(0.01)\n"
        "shown = table.vacuum(0, dryRun=True)\n"
        "spark.conf.unset('spark.deltaic.retentionDurationCheck.enabled')\n"
        "result = [shown.columns, shown.count(), len(operations(table))]",
        [["path"], 1, 2],
    ),
    "vacuum, dry run without files": (
        "result = [table.vacuum(dryRun=True).dtypes, table.vacuum(dryRun=True).count()]",
        [[["path", "string"]], 0],
    ),
    "types of results": (
        "found = [table.history(), table.detail(), table.optimize().executeCompaction()]\n"
        "found.append(table.restoreToVersion(0))\n"
        "sql = ['DESCRIBE HISTORY', 'DESCRIBE DETAIL', 'OPTIMIZE']\n"
        "same = [spark.sql(f'{statement} delta.`{path}`') for statement in sql]\n"
        "same.append(spark.sql(f'RESTORE delta.`{path}` TO VERSION AS OF 0'))\n"
        "result = [[df.schema == other.schema for df, other in zip(found, same)],"
        " found[0].first().timestamp == same[0].first().timestamp]",
        [[True] * 4, True],
    ),
    "vacuum, lite": (
        "result = [table.vacuum(lite=True).count(), operations(table)]",
        [0, ["VACUUM END", "VACUUM START", "WRITE"]],
    ),
    "clone by path": (
        "copy = table.clone(path + '-clone'); copy.delete()\n"
        "result = [repr(copy).replace(path, 'P'), ids(table.toDF()) == list(range(10))]",
        ["DeltaTable.forPath(spark, 'P-clone')", True],
    ),
    "domain metadata": (
        "table.addFeatureSupport('domainMetadata')\n"
        "table.setDomainMetadata('app', '{\"a\": \"ä\"}'); table.setDomainMetadata('other', '')\n"
        "found = [table.domainMetadata()]; table.removeDomainMetadata('app')\n"
        "result = [*found, table.domainMetadata(), operations(table)[0]]",
        [{"app": '{"a": "ä"}', "other": ""}, {"other": ""}, "SET DOMAIN METADATA"],
    ),
    "columns with metadata": (
        "from pyspark.sql.types import LongType, StructField\n"
        "field = StructField('n', LongType(), True, {'comment': 'c', 'own': 5})\n"
        "found = DeltaTable.replace(spark).location(path).addColumns([field]).execute()\n"
        "result = found.toDF().schema['n'].metadata",
        {"comment": "c", "own": 5},
    ),
    "display": (
        "result = [repr(table.alias('t')).replace(path, 'P'), 'Location' in table._repr_html_()]",
        ["DeltaTable.forPath(spark, 'P').alias('t')", True],
    ),
    "detail, all columns": (
        "row = table.detail().first().asDict()\n"
        "result = [row['createdAt'] <= row['lastModified'], table.detail().dtypes[-1]]",
        [True, ["tableFeatures", "array<string>"]],
    ),
}
