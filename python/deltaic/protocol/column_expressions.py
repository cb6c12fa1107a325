"""Metadata of columns that hold SQL."""

from __future__ import annotations

#: What the values of a column are computed by (Protocol § Generated Columns).
GENERATED = "delta.generationExpression"

#: What they are where a statement gives none (Protocol § Default Columns).
DEFAULT = "CURRENT_DEFAULT"

#: What they all meet (Protocol § Column Invariants).
INVARIANT = "delta.invariants"
