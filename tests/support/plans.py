"""What Spark's executed plan says about a query: its scans, their files, their filters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Name of the filter on deletion vectors in a plan.
DELETED = "deltaic_is_deleted"


@dataclass(frozen=True)
class PlanNode:
    """A node of an executed plan.

    Attributes
    ----------
    node
        The node in the JVM.
    in_codegen
        Whether it runs inside of whole-stage generated code.
    """

    node: Any
    in_codegen: bool

    @property
    def kind(self) -> str:
        return str(self.node.getClass().getSimpleName())

    @property
    def is_deletion_filter(self) -> bool:
        return self.kind == "FilterExec" and DELETED in self.text

    @property
    def text(self) -> str:
        """The node alone, without what is below it."""
        return str(self.node.simpleString(10_000))


def plan_nodes(df: DataFrame) -> list[PlanNode]:
    """Return all nodes of the plan, those of adaptive stages, subqueries and caches included."""
    return list(_walk(df._jdf.queryExecution().executedPlan(), False))


def nodes_below(plan: Any) -> list[PlanNode]:
    """Return a physical plan's nodes in the same way, itself included."""
    return list(_walk(plan, False))


def scans(df: DataFrame) -> list[Any]:
    """Return the scans of Delta tables in the plan."""
    return [n.node for n in plan_nodes(df) if n.kind == "BatchScanExec"]


def only_scan(df: DataFrame) -> Any:
    found = scans(df)
    assert len(found) == 1, [str(scan) for scan in found]
    return found[0]


def scanned_columns(df: DataFrame) -> str:
    """Return the schema that the one scan reads, as ``struct<...>``."""
    return str(only_scan(df).scan().readSchema().catalogString())


def deletion_filters(df: DataFrame) -> list[PlanNode]:
    return [node for node in plan_nodes(df) if node.is_deletion_filter]


def scanned_splits(df: DataFrame) -> list[tuple[str, int, int]]:
    """Return path, start and length of each split of a file that the plan would read."""
    return [
        (unquote(urlparse(file.urlEncodedPath()).path), file.start(), file.length())
        for scan in scans(df)
        for partition in _items(scan.inputPartitions())
        for file in partition.files()
    ]


def scanned_files(df: DataFrame) -> set[str]:
    return {path for path, _, _ in scanned_splits(df)}


def scanned_rows(df: DataFrame) -> int:
    """Run the query; return how many rows its scans produced before any filter."""
    df.collect()
    return sum(int(scan.metrics().get("numOutputRows").get().value()) for scan in scans(df))


def _walk(node: Any, in_codegen: bool) -> Iterator[PlanNode]:
    kind = str(node.getClass().getSimpleName())
    if kind == "AdaptiveSparkPlanExec":
        yield from _walk(node.executedPlan(), False)
        return
    if kind.endswith("QueryStageExec"):
        yield from _walk(node.plan(), False)
        return
    if kind == "InMemoryTableScanExec":
        yield from _walk(node.relation().cachedPlan(), False)
        return
    if kind == "WholeStageCodegenExec":
        in_codegen = True
    elif kind == "InputAdapter":
        in_codegen = False
    else:
        yield PlanNode(node, in_codegen)
    for child in _items(node.children()):
        yield from _walk(child, in_codegen)
    for subquery in _items(node.subqueries()):
        yield from _walk(subquery, False)


def _items(sequence: Any) -> Iterator[Any]:
    """Iterate over a Scala sequence."""
    for i in range(sequence.size()):
        yield sequence.apply(i)
