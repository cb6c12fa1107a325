"""Metadata of columns that hold SQL."""

from __future__ import annotations

#: What the values of a column are computed by (Protocol § Generated Columns).
GENERATED = "delta.generationExpression"

#: What they are where a statement gives none (Protocol § Default Columns).
DEFAULT = "CURRENT_DEFAULT"

#: What Spark's Parquet reader gives a column that a file lacks, which is null by the protocol.
#: Spark states it beside each default; it is not for the log.
EXISTS_DEFAULT = "EXISTS_DEFAULT"

#: What they all meet (Protocol § Column Invariants).
INVARIANT = "delta.invariants"
