"""``python -m deltaic``: version, jar and Spark settings; the jar alone; or checks of a table."""

from __future__ import annotations

import sys

from deltaic._version import __version__
from deltaic.exceptions import DeltaError, printable
from deltaic.protocol.validation.log import Violation
from deltaic.session import jar_path, spark_settings
from deltaic.validate import validate_table

_USAGE = """\
usage: python -m deltaic                print the version, the jar and the Spark settings
       python -m deltaic jar            print the path of the jar
       python -m deltaic validate PATH  check the log of the table in a local directory"""


def main(arguments: list[str]) -> int:
    """Print what was asked for and return the exit status.

    Returns
    -------
    int
        0 for success, 1 for an error or a log that violates the protocol, 2 for a wrong usage.
    """
    try:
        match arguments:
            case []:
                print(f"Deltaic {__version__}\njar: {jar_path()}\n\nSpark settings:")
                for name, value in spark_settings().items():
                    print(f"  --conf {name}={value}")
            case ["jar"]:
                print(jar_path())
            case ["validate", path] if path and not path.startswith("-"):
                return _validate(path)
            case _:
                print(_USAGE, file=sys.stderr)
                return 2
    except (DeltaError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def _validate(path: str) -> int:
    validation = validate_table(path)
    for violation in validation.violations:
        print(_line(violation))
    print(validation)
    return 1 if validation.violations else 0


def _line(violation: Violation) -> str:
    """Return one line that can be printed: violations quote damaged files, which hold anything."""
    line = " ".join(printable(str(violation)).splitlines())
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
