"""The other end of `SparkProcess`: one session, one JSON line in and one out for each request."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    """Answer requests until the input ends."""
    # Replies get the real standard output; whatever else prints there, the JVM included, goes to
    # the log.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    spark: SparkSession | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            spark = spark or start_session(json.loads(sys.argv[1]))
            names: dict[str, Any] = {"spark": spark, **request["args"]}
            exec(request["code"], names)
            reply = json.dumps({"result": names.get("result")})
        except Exception:
            reply = json.dumps({"error": traceback.format_exc()})
        print(reply, file=replies, flush=True)
    if spark is not None:
        spark.stop()


def start_session(start: dict[str, Any]) -> SparkSession:
    """Start the session that the command line describes."""
    if start["remote"] is not None:
        return SparkSession.builder.remote(start["remote"]).getOrCreate()
    builder = SparkSession.builder.master(start["master"]).appName("deltaic-tests-child")
    if start["engine"] == "deltaic":
        from deltaic import configure_spark

        builder = configure_spark(builder)
    for name, value in start["settings"].items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    main()
