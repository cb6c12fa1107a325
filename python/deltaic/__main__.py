"""``python -m deltaic``: version, jar and Spark settings; with ``jar``, the jar alone."""

from __future__ import annotations

import sys

from deltaic._version import __version__
from deltaic.exceptions import DeltaError
from deltaic.session import jar_path, spark_settings

_USAGE = "usage: python -m deltaic [jar]"


def main(arguments: list[str]) -> int:
    """Print what was asked for and return the exit status."""
    if arguments not in ([], ["jar"]):
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        if arguments:
            print(jar_path())
        else:
            print(f"Deltaic {__version__}\njar: {jar_path()}\n\nSpark settings:")
            for name, value in spark_settings().items():
                print(f"  --conf {name}={value}")
    except DeltaError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
