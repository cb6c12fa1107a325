"""The version of Deltaic: the jar, the wheel and the code all read it from here."""

from __future__ import annotations

__version__ = "0.1.0"
