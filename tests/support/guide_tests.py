"""Tests of the examples of the guide that do not run with the others of their page."""

from __future__ import annotations

from collections.abc import Mapping

#: By the name of the example, the tests that run it, or run what it shows.
TESTS_OF: Mapping[str, tuple[str, ...]] = {}
