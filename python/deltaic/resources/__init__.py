"""The JSON files that Python and the JVM share; the build copies them into the jar."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load_json(name: str) -> Any:
    """Return the content of one file. It is read once: callers must not change it."""
    return json.loads(files(__name__).joinpath(name).read_text(encoding="utf-8"))
