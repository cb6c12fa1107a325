"""Programs and commands, as a user runs them, and what they print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.spark_scripts import output_of, user_environment


def run_as_user(command: list[str], folder: Path) -> str:
    """Run `command` in `folder`, this Python first on PATH, and return what it printed."""
    environment = user_environment(python=None)
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    (folder / "examples").symlink_to(ROOT / "examples")
    return output_of(command, folder, environment)


def require_lines(printed: str, expected: Sequence[str]) -> None:
    """Require lines that begin as expected, in this order, among others."""
    lines = [line.removeprefix("scala> ") for line in printed.splitlines()]
    positions = [next((i for i, s in enumerate(lines) if s.startswith(e)), -1) for e in expected]
    assert -1 not in positions, lines
    assert positions == sorted(positions), "printed, but in another order"
