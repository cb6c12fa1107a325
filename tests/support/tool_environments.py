"""The environments of programs that are not in the one of the tests."""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT


def python_of(environment: str) -> str:
    """Return the Python of an environment in ``.tools``, which has not our package.

    Parameters
    ----------
    environment
        Its name, which is also that of the target in the Makefile that makes it, after ``test-``.
    """
    folder = ROOT / ".tools" / environment
    if not folder.is_dir():
        pytest.fail(f"{folder} is missing: run `make test-{environment}`", pytrace=False)
    return str(folder / "venv" / "bin" / "python")
