"""The environment of a run."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from bench.settings import REPOSITORY


def machine() -> dict[str, str | int]:
    """Describe the machine of the runner."""
    return {
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "cpu_model": _cpu_model(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": _java_version(),
    }


def load_average() -> list[float]:
    """Return the system's load average over 1, 5 and 15 minutes."""
    return [round(load, 2) for load in os.getloadavg()]


def git_commit() -> str:
    """Return the checked out commit, marked as dirty if files differ from it."""
    return _output("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _java_version() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    return _output(java, "--version").partition("\n")[0]


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
