"""Runs workloads and compares tables with brute force. Both engines' processes import this."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support import log
from tests.support.paths import ROOT
from tests.support.table_builder import row_key
from tests.support.workload import Layout, Outcome, RefusedError, Row, Step, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

#: What this project calls itself here.
OURS = "Deltaic"

#: How many steps this process has run, by engine and kind.
steps_run: Counter[str] = Counter()

#: delta-spark 4.4.0 fails so in a MERGE with ``UPDATE SET *`` into some tables with generated
#: columns, of either writer.
_BUG_OF_DELTA_SPARK = "DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT"

#: Of a session of ours: small files count as heavily deleted, too, if the table's share says so.
SETTINGS = {"spark.deltaic.deletionVectors.minDeletedBytes": "0"}

_PRESERVED = "delta.rowTracking.preserved"

#: What the history calls the last of the counts that a statement returns.
_COUNTS = {
    "DELETE": ("numDeletedRows",),
    "UPDATE": ("numUpdatedRows",),
    "MERGE": ("numTargetRowsUpdated", "numTargetRowsDeleted", "numTargetRowsInserted"),
}

#: What the history calls rows that are copied, and all that are written.
_ROWS = {
    "DELETE": ("numCopiedRows", None),
    "UPDATE": ("numCopiedRows", None),
    "MERGE": ("numTargetRowsCopied", "numOutputRows"),
}

#: The files that such a statement adds and removes whole, with their bytes; those with what
#: changed; deletion vectors that are new, gone, and both, because one took another's place.
_FILES = {
    "MERGE": (
        "numTargetFilesAdded",
        "numTargetBytesAdded",
        "numTargetFilesRemoved",
        "numTargetBytesRemoved",
        "numTargetChangeFilesAdded",
        "numTargetDeletionVectorsAdded",
        "numTargetDeletionVectorsRemoved",
        "numTargetDeletionVectorsUpdated",
    ),
    **dict.fromkeys(
        ("DELETE", "UPDATE"),
        (
            "numAddedFiles",
            "numAddedBytes",
            "numRemovedFiles",
            "numRemovedBytes",
            "numAddedChangeFiles",
            "numDeletionVectorsAdded",
            "numDeletionVectorsRemoved",
            "numDeletionVectorsUpdated",
        ),
    ),
}

_REMOTE = """
import sys
sys.path.insert(0, root)
from tests.support import workload_runs
result = getattr(workload_runs, name)(spark, *arguments)
"""


@dataclass(frozen=True)
class Engine:
    """Deltaic in this process, or another engine in its own."""

    name: str
    spark: SparkSession | None = None
    process: SparkProcess | None = None

    def run(self, path: str, statements: Sequence[str]) -> Any:
        # One at a time: another process has so long for a call, however busy the machine is.
        return [done for text in statements for done in self._call("run_statements", path, [text])]

    def contents(self, path: str, versions: Sequence[int], names: Sequence[str]) -> Any:
        return self._call("read_contents", path, list(versions), list(names))

    def feed(self, path: str, first: int, names: Sequence[str]) -> Any:
        return self._call("read_feed", path, first, list(names))

    def _call(self, name: str, *arguments: Any) -> Any:
        if self.process is not None:
            return self.process.run(_REMOTE, root=str(ROOT), name=name, arguments=list(arguments))
        found: Any = globals()[name](self.spark, *arguments)
        return found


def run_statements(spark: SparkSession, path: str, statements: Sequence[str]) -> list[Any]:
    """Run statements; return of each its counts, its error or None, and the version after it."""
    done = []
    for statement in statements:
        counts: list[int] | None = None
        error: str | None = None
        try:
            named = statement.replace("{t}", f"delta.`{path}`")
            rows = spark.sql(named.replace("{s}", f"delta.`{path}_source`")).collect()
            counts = [int(value) for row in rows for value in row]
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
        done.append([counts, error, log.newest(path)])
    return done


def read_contents(
    spark: SparkSession, path: str, versions: Sequence[int], names: Sequence[str]
) -> list[list[list[Any]]]:
    """Return the rows of each version: their keys, and what else was asked for by name."""
    found = []
    for version in versions:
        reader = spark.read.format("delta").option("versionAsOf", version)
        df = reader.load(path)
        extra = [name for name in names if name.startswith("_metadata.")]
        columns = [quoted(name) for name in names if name not in extra]
        rows = df.selectExpr(*columns, *extra).collect()
        width = len(columns)
        found.append([[row_key(tuple(row)[:width]), *row[width:]] for row in rows])
    return found


def read_feed(
    spark: SparkSession, path: str, first: int, names: Sequence[str]
) -> list[tuple[int, str, str]]:
    """Return all changes from a version on: version, kind and key of the row."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    df = reader.option("startingVersion", first).load(path)
    columns = ["_commit_version", "_change_type", *map(quoted, names)]
    rows = df.selectExpr(*columns).collect()
    return [(row[0], row[1], row_key(tuple(row)[2:])) for row in rows]


@dataclass
class Course:
    """A table, and what its versions must hold by brute force."""

    path: str
    layout: Layout
    first: int
    rows: list[Row] = field(default_factory=list)
    contents: dict[int, Counter[str]] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    writers: dict[int, str] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        return max(self.contents)

    def advance(self, engine: Engine, steps: Sequence[Step]) -> None:
        """Run steps on an engine; hold counts, refusals and versions against brute force."""
        groups = [[*step.before(), step.sql("{t}")] for step in steps]
        done = iter(engine.run(self.path, [text for group in groups for text in group]))
        for step, group in zip(steps, groups, strict=True):
            label = f"{engine.name}, {'; '.join(group)}"
            for _ in step.before():
                _, error, _ = next(done)
                assert error is None, f"{label}\n{error}"
            counts, error, version = next(done)
            steps_run[f"{engine.name} {type(step).__name__}"] += 1
            before = self.newest
            try:
                outcome = step.apply(self.rows)
            except RefusedError as refused:
                assert error is not None, f"must be refused, {refused}: {label}"
                assert version == before, f"refused, yet committed: {label}"
                continue
            if engine.name != OURS and _BUG_OF_DELTA_SPARK in (error or ""):
                assert version == before, f"failed, yet committed: {label}"
                steps_run[f"{engine.name} failures of its own"] += 1
                continue
            assert error is None, f"{label}\n{error}"
            if outcome.counts is not None:
                assert tuple(counts) == outcome.counts, label
            self.rows = outcome.after
            if version == before:
                assert not outcome.feed, f"committed nothing: {label}"
                continue
            assert version == before + 1, f"{version - before} commits: {label}"
            self._check_history(engine, version, outcome, label)
            self.contents[version] = Counter(map(row_key, self.rows))
            self.outcomes[version] = outcome
            self.writers[version] = engine.name

    def _check_history(self, engine: Engine, version: int, outcome: Outcome, label: str) -> None:
        """Hold the counts that a statement leaves in the history against those by brute force."""
        info = log.commit_info(self.path, version)
        names = _COUNTS.get(info["operation"])
        if names is not None and outcome.counts is not None:
            found = tuple(int(info["operationMetrics"][name]) for name in names)
            assert found == outcome.counts[-len(names) :], label
        if engine.name == OURS and info["operation"] in _FILES:
            beside = {name: int(info["operationMetrics"][name]) for name in outcome.metrics}
            expected = dict(outcome.metrics)
            if not outcome.updated and not outcome.inserted and beside.get("numSourceRows") == 0:
                # Spark does not read the source if the condition cannot be true.
                expected["numSourceRows"] = 0
            assert beside == expected, label
            self._check_files(version, info, outcome, label)

    def _check_files(
        self, version: int, info: dict[str, Any], outcome: Outcome, label: str
    ) -> None:
        """Hold what we say of files against the commit, and their bytes against the disk."""
        adds, removes = (
            {file["path"]: file for file in log.actions(self.path, version, kind)}
            for kind in ("add", "remove")
        )
        added = self._sizes_bytes(adds, but=removes)
        removed = self._sizes_bytes(removes, but=adds)
        new, gone = (
            {path for path, file in files.items() if "deletionVector" in file}
            for files in (adds, removes)
        )
        sizes = (len(added), sum(added), len(removed), sum(removed))
        changes = len(log.actions(self.path, version, "cdc"))
        metrics = info["operationMetrics"]
        found = tuple(int(metrics[name]) for name in _FILES[info["operation"]])
        assert found == (*sizes, changes, len(new), len(gone), len(new & gone)), label
        written = sum(
            log.statistics(file)["numRecords"] for path, file in adds.items() if path not in removes
        )
        copied, output = _ROWS[info["operation"]]
        changed = len(outcome.updated) + len(outcome.inserted)
        assert int(metrics[copied]) == written - changed, label
        assert output is None or int(metrics[output]) == written, label

    def _sizes_bytes(self, files: dict[str, Any], but: dict[str, Any]) -> list[int]:
        paths = [log.data_path(self.path, file) for path, file in files.items() if path not in but]
        return [path.stat().st_size for path in paths]

    def check(self, engine: Engine, since: int, *, newest_only: bool = False) -> None:
        """Compare what an engine reads of the versions after `since` with brute force.

        Parameters
        ----------
        newest_only
            Read the newest version alone, and the feed, which covers all.
        """
        changed = [v for v in sorted(self.contents) if v > since]
        if not changed:
            return
        versions = changed[-1:] if newest_only else changed
        names = list(self.layout.names)
        tracked = self.layout.tracks_rows and not newest_only
        if tracked:
            names += ["_metadata.row_id", "_metadata.row_commit_version"]
            versions = [since, *versions]
        found = engine.contents(self.path, versions, names)
        for version, rows in zip(versions, found, strict=True):
            what = f"{engine.name} reads version {version} of {self.path}"
            assert_equal(Counter(row[0] for row in rows), self.contents[version], what)
        if tracked:
            for number, version in enumerate(versions[1:]):
                self._check_ids(version, found[number], found[number + 1])
        if self.layout.has_feed:
            feed = engine.feed(self.path, since + 1, self.layout.names)
            self._check_feed(engine, since, changed, feed)

    def _check_ids(self, version: int, before: list[Any], after: list[Any]) -> None:
        """Rows keep their ids, changed ones too; commit versions change with changed rows alone."""
        outcome = self.outcomes[version]
        label = f"row IDs of version {version} of {self.path}, by {self.writers[version]}"
        ids = [row_id for _, row_id, _ in after]
        assert None not in ids, label
        assert len(set(ids)) == len(ids), f"{label}: not unique"
        if self.writers[version] == OURS:
            assert log.commit_info(self.path, version)["tags"][_PRESERVED] == "true", label
        known = {row_id: (key, commit) for key, row_id, commit in before}
        kept = Counter(map(row_key, outcome.kept))
        changed = Counter((row_key(old), row_key(new)) for old, new in outcome.updated)
        new = Counter(map(row_key, outcome.inserted))
        highest = max(known, default=-1)
        for key, row_id, commit in after:
            if row_id not in known:
                assert row_id > highest, f"{label}: {row_id} is not new"
                assert commit == version, f"{label}: {key} is new but of version {commit}"
                new[key] -= 1
            elif commit == version:
                changed[known[row_id][0], key] -= 1
            else:
                assert known[row_id] == (key, commit), (
                    f"{label}: {known[row_id]} became {key, commit}"
                )
                kept[key] -= 1
        for kind, left in (("kept", kept), ("changed", changed), ("new", new)):
            assert not any(left.values()), f"{label}: {kind} rows {left}"

    def _check_feed(
        self, engine: Engine, since: int, versions: Sequence[int], feed: Iterable[Any]
    ) -> None:
        """The feed has the changes of brute force; applied to a version it gives the next."""
        by_version: dict[int, Counter[tuple[str, str]]] = {}
        for version, kind, key in feed:
            by_version.setdefault(version, Counter())[kind, key] += 1
        before = since
        for version in versions:
            found = by_version.pop(version, Counter())
            expected = Counter((kind, row_key(row)) for kind, row in self.outcomes[version].feed)
            what = f"{engine.name} reads the feed of version {version} of {self.path}"
            assert_equal(found, expected, what)
            played = Counter(self.contents[before])
            for (kind, key), count in found.items():
                played[key] += count if kind in ("insert", "update_postimage") else -count
            assert min(played.values(), default=0) >= 0, what
            assert_equal(+played, self.contents[version], f"{what}, played on version {before}")
            before = version
        assert not by_version, f"changes in versions {sorted(by_version)} of {self.path}"


def begin(engine: Engine, path: str, layout: Layout) -> Course:
    """Make the empty table."""
    for counts, error, _ in engine.run(path, layout.create("{t}")):
        assert error is None, f"{engine.name}: {counts}, {error}"
    version = log.newest(path)
    return Course(path, layout, version, contents={version: Counter()})


def assert_equal(found: Counter[Any], expected: Counter[Any], what: str) -> None:
    missing, surplus = expected - found, found - expected
    assert not missing and not surplus, f"{what}:\n missing {missing}\n too many {surplus}"
