"""Java exceptions as errors of Python; the exceptions are stand-ins, for no JVM is started here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.exceptions import ConcurrentAppendException, DeltaError
from deltaic.spark.errors import delta_error_of


class JavaThrowable:
    """What Py4J shows of a Java exception."""

    def __init__(self, name: str, cause: JavaThrowable | None = None, **parameters: str) -> None:
        self._name, self._cause, self._parameters = name, cause, parameters

    def getClass(self) -> JavaThrowable:
        return self

    def getName(self) -> str:
        return self._name

    def getSuperclass(self) -> JavaThrowable:
        return JavaThrowable(self._parameters.get("superclass", "java.lang.RuntimeException"))

    def getCause(self) -> JavaThrowable | None:
        return self._cause

    def getCondition(self) -> str:
        return self._parameters["condition"]

    def getParametersJson(self) -> str:
        return json.dumps({k: v for k, v in self._parameters.items() if k != "condition"})

    def getMessage(self) -> str:
        return f"[{self.getCondition()}] as the JVM says it"


def deltaic(
    condition: str, name: str = "io.deltaic.spark.errors.DeltaicAnalysisException"
) -> JavaThrowable:
    return JavaThrowable(name, condition=condition, table="file:/t")


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_deltaic_exception_is_found_in_the_chain_of_causes(depth: int) -> None:
    throwable = deltaic("DELTAIC_CONCURRENT_APPEND")
    for _ in range(depth):
        throwable = JavaThrowable("org.apache.spark.SparkException", throwable)
    found = delta_error_of(throwable)
    assert isinstance(found, ConcurrentAppendException)
    assert found.condition == "DELTAIC_CONCURRENT_APPEND"
    assert found.parameters == {"table": "file:/t"}
    assert str(found) == "[DELTAIC_CONCURRENT_APPEND] as the JVM says it"


@pytest.mark.parametrize(
    "name",
    [
        "io.deltaic.protocol.DeltaicException",
        "io.deltaic.spark.errors.DeltaicRuntimeException",
        "io.deltaic.spark.errors.DeltaicConcurrentModificationException",
    ],
)
def test_exceptions_of_all_classes_are_found(name: str) -> None:
    found = delta_error_of(deltaic("DELTAIC_CONCURRENT_APPEND", name))
    assert isinstance(found, ConcurrentAppendException)


def test_conflict_may_have_the_class_name_of_delta_spark() -> None:
    """As in a Spark Connect server that serves delta-spark's client."""
    ours = "io.deltaic.spark.errors.DeltaicConcurrentModificationException"
    name = "io.delta.exceptions.ConcurrentAppendException"
    conflict = JavaThrowable(name, condition="DELTAIC_CONCURRENT_APPEND", superclass=ours)
    assert isinstance(delta_error_of(conflict), ConcurrentAppendException)
    assert delta_error_of(JavaThrowable(name)) is None


def test_condition_of_a_newer_jar_is_an_error_of_the_base_class() -> None:
    found = delta_error_of(deltaic("DELTAIC_FROM_A_NEWER_JAR"))
    assert type(found).__name__ == DeltaError.__name__


@pytest.mark.parametrize(
    "throwable",
    [
        None,
        JavaThrowable("java.lang.IllegalStateException"),
        JavaThrowable("org.apache.spark.SparkException", JavaThrowable("java.io.IOException")),
        JavaThrowable(
            "org.apache.spark.sql.streaming.StreamingQueryException",
            deltaic("DELTAIC_CONCURRENT_APPEND"),
        ),
    ],
)
def test_other_exceptions_are_left_alone(throwable: Any) -> None:
    assert delta_error_of(throwable) is None


def test_chain_of_causes_that_never_ends_is_given_up() -> None:
    loop = JavaThrowable("java.lang.RuntimeException")
    loop._cause = loop
    assert delta_error_of(loop) is None
