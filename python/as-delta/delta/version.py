"""The version of Deltaic."""

from __future__ import annotations

from deltaic.version import __version__

__all__ = ["__version__"]
