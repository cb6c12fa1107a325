"""Tests of the examples of the guide that do not run with the others of their page.

An example is named as in `guide_examples.Block`. One in Python or SQL that is not listed runs in
`tests/guide/test_pages.py`. One in another language must be listed, except for the syntax of
statements.
"""

from __future__ import annotations

from collections.abc import Mapping

_DBT = "tests/tools/test_dbt.py::test_incremental_models_merge_append_and_replace_partitions"
_HIVE = (
    "tests/spark/session/test_hive_clients.py"
    "::test_client_with_hive_support_changes_and_reads_a_table"
)
_S3 = "tests/s3/test_commits.py::test_every_acknowledged_append_of_racing_processes_is_there_once"
_SETTINGS = "tests/unit/test_session.py::test_module_prints_version_jar_and_settings"
_CONNECT = "tests/clients/test_connect.py::test_client_changes_and_reads_a_table"

#: Shell commands that `tests/guide/test_programs.py` runs as a user, and lines that they print.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "quick-start: A program 1": ("900 rows left",),
    "quick-start: SQL alone 1": ("61", "100"),
    "migrating: spark-submit, spark-sql and spark-shell 1": ("900 rows left",),
    "cluster: spark-submit 1": ("900 rows left",),
    "servers: spark-shell 1": ("rows left: 7",),
}

#: Pages whose examples in Python are a program, which `tests/guide/test_programs.py` runs.
PROGRAMS = ("migrating", "quick-start", "sessions", "tools")

#: Examples that other tests run, or that show what other tests run.
COVERED: Mapping[str, str] = {
    "cluster: S3 1": _S3,
    "cluster: Settings for every job 1": (
        "tests/guide/test_programs.py::test_defaults_of_the_guide_make_every_session_ours"
    ),
    "command-line: inspect 1": ("tests/unit/test_inspect_command.py::test_sections_are_printed"),
    "command-line: settings, jar, examples 1": (
        "tests/unit/test_session.py::test_module_prints_the_jar_alone"
    ),
    "command-line: validate 1": (
        "tests/unit/test_validate_command.py::test_valid_log_has_no_violation"
    ),
    "connect: Spark Connect 1": _CONNECT,
    "connect: Spark Connect 2": _CONNECT,
    "connect: Clients 1": (
        "tests/clients/test_delta_table_methods.py"
        "::test_client_of_deltaic_does_what_a_classic_session_does"
    ),
    "quick-start: Install 1": (
        "tests/unit/test_guide.py::test_targets_of_make_in_the_guide_are_in_the_makefile"
    ),
    "quick-start: Install 2": _SETTINGS,
    "scala: Scala and Java 1": (
        "tests/guide/test_programs.py::test_scala_of_the_guide_prints_what_it_says"
    ),
    "scala: DeltaTable 1": (
        "tests/guide/test_programs.py::test_scala_of_the_guide_prints_what_it_says"
    ),
    "scala: DeltaTable 2": (
        "tests/spark/commit/test_scala_programs.py::test_scala_example_of_the_guide_runs"
    ),
    "scala: DeltaTable 4": (
        "tests/guide/test_programs.py::test_scala_compiles_without_a_build_tool_as_the_guide_says"
    ),
    "servers: Hive metastore 1": (
        "tests/spark/session/test_servers.py"
        "::test_metastore_outlives_the_process_that_created_a_table"
    ),
    "servers: Notebooks, and the shell of PySpark 1": (
        "tests/guide/test_programs.py::test_shell_of_pyspark_in_the_guide_has_a_session_of_deltaic"
    ),
    "servers: Thrift server 1": _HIVE,
    "servers: spark-sql 1": _HIVE,
    "sessions: Sessions 1": _SETTINGS,
    "tools: dbt 1": _DBT,
    "tools: dbt 2": _DBT,
    "tools: dbt 3": _DBT,
    "tools: kedro 1": "tests/tools/test_kedro.py::test_spark_dataset_needs_nothing_but_the_jar",
    "tools: kedro 2": (
        "tests/tools/test_kedro.py::test_pipeline_merges_into_the_table_that_it_wrote"
    ),
    "tools: pandas on Spark 1": (
        "tests/tools/test_pandas_on_spark.py::test_frames_are_written_read_and_changed"
    ),
    "tools: Great Expectations 1": (
        "tests/tools/test_great_expectations.py"
        "::test_tables_are_validated_in_their_newest_and_in_an_older_version"
    ),
    "tools: Ibis 1": (
        "tests/tools/test_ibis.py::test_tables_are_created_replaced_by_themselves_and_dropped"
    ),
    "tools: SQLMesh 1": (
        "tests/tools/test_sqlmesh.py::test_models_of_all_kinds_are_built_and_built_again"
    ),
    "tools: mack 1": "tests/tools/test_mack.py::test_kill_duplicates",
}

#: Languages of examples that run with the others of their page.
RUN = ("python", "sql")
#: The language of the syntax of statements, which is no example.
SYNTAX = "text"
