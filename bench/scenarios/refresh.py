"""TPC-H's refresh functions on lineitem, which insert and delete orders, both by MERGE."""

from __future__ import annotations

from typing import ClassVar

from bench import lineitem, lineitem_changes
from bench.lab import Answer, Lab
from bench.scenarios.changes import Changes, changed_rows
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


class Refresh(Scenario):
    """RF1 inserts the lines of 0.1 % of the orders, then RF2 deletes as many old orders' lines."""

    name: ClassVar[str] = "refresh"
    rounds: ClassVar[int] = 5
    needs_lineitem: ClassVar[bool] = True

    def __init__(self) -> None:
        self._truth: dict[str, Answer] = {}

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row per refresh function."""
        floor = "count of the rows that match the source"
        return (
            Measure("rf1", "TPC-H RF1: MERGE of new orders", floor=floor),
            Measure("rf2", "TPC-H RF2: MERGE that deletes orders", floor=floor),
        )

    def prepare(self, lab: Lab) -> None:
        """Load the table to clone and the sources; compute the results with plain Parquet."""
        path = lineitem.prepare(lab)
        new, old = lineitem_changes.new_orders(lab), lineitem_changes.old_orders(lab)
        if not lab.engine.is_delta:
            rows = lab.read(path, lineitem.SCHEMA)
            left = rows.join(old, "l_orderkey", "left_anti").unionByName(new)
            self._truth = {
                "refreshed": lineitem.content(left),
                changed_rows("rf1"): [[str(new.count())]],
                changed_rows("rf2"): [[str(rows.join(old, "l_orderkey", "left_semi").count())]],
            }

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Run both functions on a fresh clone, one after the other, and read its content."""
        if not lab.engine.is_delta:
            return self._measure_floor(lab)
        path = lineitem.clone(lab, f"refresh-{repetition}")
        lineitem_changes.new_orders(lab).createOrReplaceTempView("new_orders")
        lineitem_changes.old_orders(lab).createOrReplaceTempView("old_orders")
        table = lab.sql_name(path)
        changes = Changes(lab)
        insert = lineitem_changes.INSERT_NEW.format(table=table, source="new_orders")
        changes.run("rf1", path, insert)
        delete = lineitem_changes.DELETE_OLD.format(table=table, source="old_orders")
        changes.run("rf2", path, delete)
        changes.answers["refreshed"] = lineitem.content(lab.read(path, lineitem.SCHEMA))
        lab.storage.delete(path)
        return changes.measurement()

    def _measure_floor(self, lab: Lab) -> Measurement:
        whole = lab.read(lineitem.whole(lab), lineitem.SCHEMA)
        new, old = lineitem_changes.new_orders(lab), lineitem_changes.old_orders(lab)
        inserted = whole.join(new, ["l_orderkey", "l_linenumber"], "left_semi")
        deleted = whole.join(old, "l_orderkey", "left_semi")
        timings = {"rf1": lab.timed(inserted.count)[0], "rf2": lab.timed(deleted.count)[0]}
        return Measurement(timings=timings, answers=dict(self._truth))
