"""What delta-spark's documentation says about `DeltaTable` and its builders, as code.

The code sees what that of `delta_table_methods` sees. That of `RULES` assigns what it finds to
``result``, which both engines must agree on. The last statement of that of `ERRORS` must fail.
"""

from __future__ import annotations

from collections.abc import Mapping

#: A source for merges: the ids 8 to 11, of which the table has two.
MERGE = "merge = table.alias('t').merge(spark.range(8, 12).alias('s'), 't.id = s.id')\n"

RULES: Mapping[str, str] = {
    "merge: the first clause that a row satisfies": (
        MERGE + "merge = merge.whenMatchedUpdate('s.id = 8', {'id': '-1'})\n"
        "merge = merge.whenMatchedUpdate('s.id < 100', {'id': '-2'}).whenMatchedDelete()\n"
        "merge = merge.whenNotMatchedInsert('s.id = 10', {'id': '-3'})\n"
        "merge.whenNotMatchedInsert(values={'id': '-4'}).execute(); result = ids(table.toDF())"
    ),
    "merge: rows that no clause reaches stay": (
        MERGE + "merge = merge.whenMatchedDelete('s.id = 100')\n"
        "merge = merge.whenNotMatchedInsertAll('s.id = 100')\n"
        "merge.whenNotMatchedBySourceDelete('t.id = 100').execute(); result = ids(table.toDF())"
    ),
    "merge: the first clause for rows without a source": (
        MERGE + "merge = merge.whenNotMatchedBySourceUpdate('t.id < 3', {'id': 't.id - 10'})\n"
        "merge = merge.whenNotMatchedBySourceUpdate('t.id < 5', {'id': 't.id - 100'})\n"
        "merge.whenNotMatchedBySourceDelete().execute(); result = ids(table.toDF())"
    ),
    "merge: all columns by their names": (
        "columns = 'a INT, b INT'\n"
        "frame = lambda rows, names: spark.createDataFrame(rows, columns).select(names)\n"
        "frame([(1, 1)], ['a', 'b']).write.format('delta').save(path + '2')\n"
        "target = DeltaTable.forPath(spark, path + '2')\n"
        "source = frame([(1, 5), (2, 6)], ['b', 'a']).alias('s')\n"
        "source = source.selectExpr('b', 'a').alias('s')\n"
        "target.alias('t').merge(source, 't.a = s.a').whenMatchedUpdateAll()"
        ".whenNotMatchedInsertAll().execute()\n"
        "result = sorted(list(row) for row in target.toDF().collect())"
    ),
    "merge: a builder is left as it was": (
        MERGE + "insert = merge.whenNotMatchedInsertAll(); delete = merge.whenMatchedDelete()\n"
        "delete.execute(); first = ids(table.toDF()); insert.execute()\n"
        "result = [first, ids(table.toDF())]"
    ),
    "merge: its result": (MERGE + "result = merge.whenMatchedDelete().execute().dtypes"),
    "merge: columns that are left out get null": (
        "spark.sql('SELECT 1 AS a, 2 AS b').write.format('delta').save(path + '2')\n"
        "target = DeltaTable.forPath(spark, path + '2')\n"
        "target.alias('t').merge(spark.range(5, 6).alias('s'), 'false')"
        ".whenNotMatchedInsert(values={'a': 's.id'}).execute()\n"
        "result = sorted((list(row) for row in target.toDF().collect()), key=str)"
    ),
    "merge: arguments by position and by name": (
        "merge = table.merge(source=spark.range(2).toDF('k'), condition=col('id') == col('k'))\n"
        "merge = merge.whenMatchedUpdate(condition=col('k') == 1, set={'id': col('k') + 20})\n"
        "merge = merge.whenMatchedDelete(condition='k = 0')\n"
        "merge.whenNotMatchedBySourceUpdate(condition='id = 9', set={'id': '90'}).execute()\n"
        "result = ids(table.toDF())"
    ),
    "update: a string is an expression": (
        "table.update(condition='id = 3', set={'id': 'id * 10'}); result = ids(table.toDF())"
    ),
    "update: the old values on the right": (
        "spark.sql('SELECT 1 AS a, 2 AS b').write.format('delta').save(path + '2')\n"
        "target = DeltaTable.forPath(spark, path + '2'); target.update(set={'a': 'b', 'b': 'a'})\n"
        "result = list(target.toDF().first())"
    ),
    "update and delete return nothing": (
        "result = [table.update('id = 1', {'id': '5'}), table.delete('id = 3')]"
    ),
    "delete: null is not true": ("table.delete('id > NULL'); result = ids(table.toDF())"),
    "history: the newest first, and a limit": (
        "table.delete('id = 1'); table.delete('id = 2')\n"
        "result = [[row.version for row in table.history(n).collect()] for n in (0, 1, 2, 10)]"
    ),
    "history: its columns": "result = table.history().dtypes",
    "detail: its columns": "result = table.detail().dtypes[:13]",
    "optimize: its result": "result = table.optimize().executeCompaction().dtypes[:1]",
    "restore: its result": "table.delete('id = 1'); result = table.restoreToVersion(0).dtypes",
    "vacuum: an empty DataFrame": "df = table.vacuum(); result = df.count()",
    "vacuum: hours are a number": "table.vacuum(200); table.vacuum(200.5); result = None",
    "restore: by a time": (
        "from datetime import timedelta\n"
        "table.delete('id = 1'); done = table.history(1).first().timestamp\n"
        "import time; time.sleep(2.5); table.delete('id = 2')\n"
        "at = (done + timedelta(seconds=1)).strftime('%Y-%m-%d %H:%M:%S')\n"
        "found = table.restoreToTimestamp(at).count()\n"
        "result = [found, ids(table.toDF())]"
    ),
    "generate: modes are not case-sensitive": (
        "spark.range(4).write.format('delta').save(path + '2')\n"
        "DeltaTable.forPath(spark, path + '2').generate('SYMLINK_format_MANIFEST')\n"
        "import os; result = os.path.exists(path + '2/_symlink_format_manifest/manifest')"
    ),
    "create: where the session is the active one": (
        "found = DeltaTable.create().location(path + '2').addColumn('a', 'INT').execute()\n"
        "result = found.toDF().dtypes"
    ),
    "create: columns of all kinds": (
        "from pyspark.sql.types import *\n"
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('a', IntegerType())\n"
        "builder = builder.addColumn('b', dataType='STRUCT<x: INT, y: ARRAY<DATE>>')\n"
        "builder = builder.addColumns([StructField('c', MapType(StringType(), LongType()))])\n"
        "builder = builder.addColumns(StructType([StructField('d', DateType(), False)]))\n"
        "result = builder.execute().toDF().dtypes"
    ),
    "create: nullable, comment and generated columns": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('a', 'INT', False)\n"
        "builder = builder.addColumn('b', 'INT', generatedAlwaysAs='a + 1', comment='next')\n"
        "found = builder.execute()\n"
        "spark.sql(f'INSERT INTO delta.`{path}2` (a) VALUES (5)')\n"
        "columns = found.toDF().schema\n"
        "result = [list(found.toDF().first()), columns['a'].nullable,"
        " columns['b'].metadata.get('comment')]"
    ),
    "create: identity columns": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('v', 'INT')\n"
        "always = IdentityGenerator(); mine = IdentityGenerator(10, -2)\n"
        "builder = builder.addColumn('a', 'BIGINT', generatedAlwaysAs=always)\n"
        "found = builder.addColumn('b', 'BIGINT', generatedByDefaultAs=mine).execute()\n"
        "spark.sql(f'INSERT INTO delta.`{path}2` (v) VALUES (1)')\n"
        "spark.sql(f'INSERT INTO delta.`{path}2` (v, b) VALUES (2, 77)')\n"
        "result = [sorted(list(row) for row in found.toDF().collect()), repr(always)]"
    ),
    "create: partitions": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('a', 'INT')\n"
        "builder = builder.addColumn('b', 'INT').addColumn('c', 'INT')\n"
        "more = builder.partitionedBy(['b', 'c']).execute()\n"
        "result = more.detail().first().partitionColumns"
    ),
    "create: clusters": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('a', 'INT')\n"
        "builder = builder.addColumn('b', 'INT').clusterBy('b', 'a')\n"
        "result = builder.execute().detail().first().clusteringColumns"
    ),
    "create: methods return the builder": (
        "builder = DeltaTable.create(spark)\n"
        "result = [builder.tableName(name) is builder, builder.location(path + '2') is builder,"
        " builder.comment('c') is builder, builder.property('a', 'b') is builder,"
        " builder.addColumn('a', 'INT') is builder, builder.partitionedBy('a') is builder]"
    ),
    "create: a table that exists": (
        "result = ids(DeltaTable.createIfNotExists(spark).location(path)"
        ".addColumn('id', 'BIGINT').execute().toDF())"
    ),
    "replace: rows and columns": (
        "builder = DeltaTable.replace(spark).location(path).addColumn('a', 'INT')\n"
        "found = builder.execute(); result = [found.toDF().columns, found.toDF().count()]"
    ),
    "forName: a path": (
        "result = [ids(DeltaTable.forName(spark, f'delta.`{path}`').toDF()),"
        " DeltaTable.isDeltaTable(spark, path)]"
    ),
    "isDeltaTable: files and folders that are none": (
        "spark.range(3).write.parquet(path + '2'); import os; os.mkdir(path + '3')\n"
        "found = [DeltaTable.isDeltaTable(spark, path + end) for end in ('', '2', '3', '4')]\n"
        "result = [*found, DeltaTable.isDeltaTable(spark, path + '/_delta_log')]"
    ),
    "convertToDelta: it exists already": (
        "spark.range(3).write.parquet(path + '2')\n"
        "for _ in range(2):\n"
        "    found = DeltaTable.convertToDelta(spark, f'parquet.`{path}2`')\n"
        "result = [ids(found.toDF()), operations(found)]"
    ),
    "clone: without files of its own": (
        "table.delete('id > 2'); at = str(table.history(1).first().timestamp)\n"
        "more = {'properties': {'delta.appendOnly': 'true'}, 'isShallow': True}\n"
        "table.clone(f'delta.`{path}2`', **more)\n"
        "table.cloneAtVersion(0, f'delta.`{path}3`', isShallow=True, replace=False)\n"
        "table.cloneAtTimestamp(at, f'delta.`{path}4`', True)\n"
        "found = [DeltaTable.forPath(spark, path + end) for end in '234']\n"
        "only = found[0].detail().first().properties['delta.appendOnly']\n"
        "result = [[ids(each.toDF()), operations(each)] for each in found] + [only]"
    ),
    "upgradeTableProtocol: not downwards": (
        "table.upgradeTableProtocol(1, 2); row = table.detail().first()\n"
        "result = [row.minReaderVersion, row.minWriterVersion]"
    ),
    "upgradeTableProtocol: the features of lower versions": (
        "found = []\n"
        "for n, (reader, writer) in enumerate([(1, 2), (1, 4), (1, 5), (1, 6), (2, 5), (2, 6)]):\n"
        "    rows = spark.range(4).write.format('delta')\n"
        "    rows.option('delta.enableDeletionVectors', 'true').save(f'{path}-{n}')\n"
        "    table = DeltaTable.forPath(spark, f'{path}-{n}')\n"
        "    table.upgradeTableProtocol(reader, writer)\n"
        "    found.append(sorted(table.detail().first().tableFeatures))\n"
        "result = found"
    ),
    "addFeatureSupport: a feature of writers, and of readers": (
        "spark.range(4).write.format('delta').save(path + '2')\n"
        "found, plain = [], DeltaTable.forPath(spark, path + '2')\n"
        "for feature in ('checkConstraints', 'typeWidening'):\n"
        "    plain.addFeatureSupport(feature); row = plain.detail().first()\n"
        "    versions = [row.minReaderVersion, row.minWriterVersion]\n"
        "    found.append([*versions, sorted(row.tableFeatures)])\n"
        "result = found"
    ),
    "dropFeatureSupport: the weakest protocol": (
        "spark.range(4).write.format('delta').save(path + '2')\n"
        "plain = DeltaTable.forPath(spark, path + '2')\n"
        "plain.addFeatureSupport('checkConstraints'); plain.addFeatureSupport('domainMetadata')\n"
        "plain.dropFeatureSupport('domainMetadata'); row = plain.detail().first()\n"
        "result = [row.minReaderVersion, row.minWriterVersion]"
    ),
    "alias: of a table, in conditions and in toDF": (
        "aliased = table.alias('x'); aliased.update('x.id = 1', {'x.id': 'x.id + 50'})\n"
        "result = [aliased.toDF().select('x.id').count(), ids(table.toDF())]"
    ),
    "names of arguments": (
        "DeltaTable.forPath(sparkSession=spark, path=path, hadoopConf={})\n"
        "DeltaTable.forName(sparkSession=spark, tableOrViewName=f'delta.`{path}`')\n"
        "DeltaTable.isDeltaTable(sparkSession=spark, identifier=path)\n"
        "table.alias(aliasName='t'); table.history(limit=1); table.vacuum(retentionHours=200)\n"
        "table.restoreToVersion(version=0)\n"
        "table.upgradeTableProtocol(readerVersion=1, writerVersion=2)\n"
        "table.addFeatureSupport(featureName='domainMetadata')\n"
        "table.dropFeatureSupport(featureName='domainMetadata', truncateHistory=False)\n"
        "result = operations(table)[-1]"
    ),
}

ERRORS: Mapping[str, str] = {
    "forPath: no table": "DeltaTable.forPath(spark, path + '/x')",
    "forPath: a folder of Parquet files": (
        "spark.range(3).write.parquet(path + '2'); DeltaTable.forPath(spark, path + '2')"
    ),
    "forPath: settings that are not of a file system": (
        "DeltaTable.forPath(spark, path, {'spark.x': 'y'})"
    ),
    "forName: no table": "DeltaTable.forName(spark, 'no_such_table')",
    "forName: a view": (
        "table.toDF().createOrReplaceTempView(name); DeltaTable.forName(spark, name)"
    ),
    "forName: a table of Parquet files": (
        "spark.range(3).write.format('parquet').saveAsTable(name); DeltaTable.forName(spark, name)"
    ),
    "delete: no such column": "table.delete('nothing = 1')",
    "delete: no condition": "table.delete('id + 1')",
    "delete: no expression": "table.delete('id >')",
    "update: no such column": "table.update(set={'nothing': '1'})",
    "update: no such column in the expression": "table.update(set={'id': 'nothing'})",
    "update: a value of another type": "table.update(set={'id': \"named_struct('a', 1)\"})",
    "merge: two clauses without conditions": (
        MERGE + "merge.whenMatchedDelete().whenMatchedUpdateAll().execute()"
    ),
    "merge: two inserts without conditions": (
        MERGE + "merge.whenNotMatchedInsertAll().whenNotMatchedInsertAll().execute()"
    ),
    "merge: two deletes without conditions": (
        MERGE + "merge.whenNotMatchedBySourceDelete().whenNotMatchedBySourceDelete().execute()"
    ),
    "merge: no clause": MERGE + "merge.execute()",
    "merge: the source in a clause for rows without one": (
        MERGE + "merge.whenNotMatchedBySourceUpdate(set={'id': 's.id'}).execute()"
    ),
    "merge: the target in an insert": (
        MERGE + "merge.whenNotMatchedInsert(values={'id': 't.id'}).execute()"
    ),
    "merge: no such column of the target": (
        MERGE + "merge.whenMatchedUpdate(set={'nothing': '1'}).execute()"
    ),
    "merge: an ambiguous condition": (
        "table.merge(spark.range(3), 'id = id').whenMatchedDelete().execute()"
    ),
    "optimize: a condition on a column of data": (
        "table.optimize().where('id = 1').executeCompaction()"
    ),
    "z-order: no such column": "table.optimize().executeZOrderBy('nothing')",
    "z-order: a partition column": (
        "parts = spark.range(3).selectExpr('id', 'id AS p').write.format('delta')\n"
        "parts.partitionBy('p').save(path + '2')\n"
        "DeltaTable.forPath(spark, path + '2').optimize().executeZOrderBy('p')"
    ),
    "generate: an unknown mode": "table.generate('nothing')",
    "generate: of a table with deletion vectors": (
        "table.delete('id = 1'); table.generate('symlink_format_manifest')"
    ),
    "restore: a version that does not exist": "table.restoreToVersion(10)",
    "restore: a time before the table": "table.restoreToTimestamp('1990-01-01')",
    "restore: no time": "table.restoreToTimestamp('yesterday evening')",
    "create: the table exists": (
        "DeltaTable.create(spark).location(path).addColumn('id', 'BIGINT').execute()"
    ),
    "create: neither name nor location": (
        "DeltaTable.create(spark).addColumn('id', 'BIGINT').execute()"
    ),
    "create: a column twice": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('a', 'INT')\n"
        "builder.addColumn('A', 'INT').execute()"
    ),
    "create: a partition column that does not exist": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('a', 'INT')\n"
        "builder.partitionedBy('b').execute()"
    ),
    "create: partitions and clusters": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('a', 'INT')\n"
        "builder.addColumn('b', 'INT').partitionedBy('a').clusterBy('b').execute()"
    ),
    "create: an unknown type": (
        "DeltaTable.create(spark).location(path + '2').addColumn('a', 'NOTHING').execute()"
    ),
    "create: an unknown property": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('a', 'INT')\n"
        "builder.property('delta.nothing', '1').execute()"
    ),
    "create: a step of zero": "IdentityGenerator(step=0); builder = DeltaTable.create(spark)\n"
    "builder.addColumn('a', 'BIGINT', generatedAlwaysAs=IdentityGenerator(step=0))",
    "create: an identity column that is no BIGINT": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('v', 'INT')\n"
        "builder.addColumn('a', 'INT', generatedAlwaysAs=IdentityGenerator()).execute()"
    ),
    "replace: no table": (
        "DeltaTable.replace(spark).location(path + '2').addColumn('a', 'INT').execute()"
    ),
    "convertToDelta: another format": "DeltaTable.convertToDelta(spark, f'json.`{path}`')",
    "convertToDelta: no files": (
        "import os; os.mkdir(path + '2'); DeltaTable.convertToDelta(spark, f'parquet.`{path}2`')"
    ),
    "addFeatureSupport: an unknown feature": "table.addFeatureSupport('nothing')",
    "dropFeatureSupport: an unknown feature": "table.dropFeatureSupport('nothing')",
    "dropFeatureSupport: a feature that is not there": "table.dropFeatureSupport('v2Checkpoint')",
    "dropFeatureSupport: a feature that stays": (
        "table.addFeatureSupport('rowTracking'); table.dropFeatureSupport('domainMetadata')"
    ),
    "upgradeTableProtocol: an unknown version": "table.upgradeTableProtocol(10, 10)",
    "clone: the target exists": (
        "spark.range(3).write.format('delta').save(path + '2')\n"
        "table.clone(path + '2', isShallow=True)"
    ),
    "clone: a version that does not exist": (
        "table.cloneAtVersion(10, path + '2', isShallow=True)"
    ),
    "the table is gone": "import shutil; shutil.rmtree(path); table.delete('id = 1')",
    "a constraint": (
        "spark.sql(f'ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (id < 10)')\n"
        "table.update(set={'id': '50'})"
    ),
    "a column that is not null": (
        "builder = DeltaTable.create(spark).location(path + '2').addColumn('a', 'INT', False)\n"
        "found = builder.execute(); spark.sql(f'INSERT INTO delta.`{path}2` VALUES (1)')\n"
        "found.update(set={'a': 'NULL'})"
    ),
    "appends only": (
        "alter = f\"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')\"\n"
        "spark.sql(alter)\n"
        "table.delete('id = 1')"
    ),
}
