"""The version of Deltaic, in the module in which delta-spark has its own."""

from __future__ import annotations

from deltaic._version import __version__

__all__ = ["__version__"]
