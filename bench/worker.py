"""A process that runs one engine and serves requests: ``python -m bench.worker NAME``.

The first line on standard input has the settings; the others are requests of `messages`.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from typing import TextIO

from pyspark.sql import SparkSession

from bench.engines import ENGINES, start_session
from bench.lab import Lab, stopwatch
from bench.messages import Reply, Request
from bench.scenarios import BY_NAME
from bench.scenarios.scenario import Scenario
from bench.settings import Settings
from bench.storage import Storage

_JVM_EXIT_TIMEOUT_S = 60


def main(engine_name: str) -> None:
    """Serve requests until a stop request, or until the runner exits."""
    replies = _claim_standard_output()
    settings = Settings.from_json(sys.stdin.readline())
    engine = ENGINES[engine_name]
    began_s = time.perf_counter()
    try:
        session_s, spark = stopwatch(lambda: start_session(engine, settings))
        facts: dict[str, str | float] = {
            "session_s": session_s,
            "engine_version": engine.version(),
            "spark_version": spark.version,
        }
        _send(replies, Reply(facts=facts))
    except Exception:
        _send(replies, Reply(error=traceback.format_exc()))
        return
    try:
        _serve(Lab(spark, engine, settings, Storage(spark), began_s), replies)
    finally:
        _stop(spark)


def _claim_standard_output() -> TextIO:
    """Reserve standard output for replies: other output of Spark or Java goes to the log."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return replies


def _send(replies: TextIO, reply: Reply) -> None:
    replies.write(reply.to_line())
    replies.flush()


def _serve(lab: Lab, replies: TextIO) -> None:
    scenarios: dict[str, Scenario] = {}
    for line in sys.stdin:
        request = Request.from_line(line)
        if request.verb == "stop":
            return
        try:
            if request.scenario not in scenarios:
                scenarios[request.scenario] = BY_NAME[request.scenario]()
            _send(replies, _answer(request, scenarios[request.scenario], lab))
        except Exception:
            _send(replies, Reply(error=traceback.format_exc()))


def _answer(request: Request, scenario: Scenario, lab: Lab) -> Reply:
    if request.verb == "prepare":
        scenario.prepare(lab)
        return Reply()
    return Reply(measurement=scenario.measure(lab, request.repetition))


def _stop(spark: SparkSession) -> None:
    """Wait until the JVM exits, so that it does not disturb the next engine."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    assert gateway is not None
    jvm = gateway.proc
    gateway.shutdown()
    jvm.stdin.close()
    jvm.wait(_JVM_EXIT_TIMEOUT_S)


if __name__ == "__main__":
    main(sys.argv[1])
