"""``python -m deltaic``: settings of a session, and the state and the checks of a table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from deltaic._version import __version__
from deltaic.exceptions import DeltaError
from deltaic.inspection.gather import inspect_table
from deltaic.inspection.render import BLOCK, one_line, render
from deltaic.session import (
    delta_api_jar_path,
    examples_path,
    jar_path,
    spark_settings,
    supported_versions,
)
from deltaic.validate import validate_table

_PATH_HELP = "the directory of the table: a local path, or a URI with the scheme file"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments ask for and return the exit status.

    Parameters
    ----------
    arguments
        By default those of the process.

    Returns
    -------
    int
        0 for success, 1 for a log that violates the protocol, 2 for an error.

    Raises
    ------
    SystemExit
        With status 0 after ``--help`` and ``--version``, and with 2 for a wrong usage.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        match options.command:
            case "inspect":
                _inspect(options.path, as_json=options.json)
            case "validate":
                return _validate(options.path)
            case "settings":
                _print_settings()
            case "jar":
                jars = [jar_path(), *([delta_api_jar_path()] if options.delta_api else [])]
                print(*jars, sep=",")
            case "examples":
                print(examples_path())
            case None:
                parser.print_help()
    except (DeltaError, OSError) as problem:
        print(one_line(str(problem)), file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deltaic", description="Deltaic, a Delta Lake engine for Apache Spark."
    )
    versions = ", ".join(supported_versions())
    parser.add_argument(
        "--version",
        action="version",
        version=f"Deltaic {__version__} for Spark {versions}",
        help="print the version of Deltaic and the versions of Spark that it supports",
    )
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")

    def command(name: str, summary: str, description: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=summary, description=description)

    inspect = command(
        "inspect",
        "show the state of a table, and what to run",
        "Show the state of a table, and which statements to run. The log is read without Spark. "
        "The exit status is 2 if it cannot be read.",
    )
    inspect.add_argument("path", metavar="PATH", type=_path, help=_PATH_HELP)
    inspect.add_argument("--json", action="store_true", help="print one JSON object")
    validate = command(
        "validate",
        "check the log of a table",
        "Check every commit of a table against the protocol, without Spark. "
        "The exit status is 1 if one violates it or is not JSON, and 2 if there is no table or the "
        "log cannot be listed.",
    )
    validate.add_argument("path", metavar="PATH", type=_path, help=_PATH_HELP)
    command(
        "settings",
        "print the version, the path of the jar and the Spark settings",
        "Print the version, the path of the jar, and the settings that a Spark session needs.",
    )
    jar = command("jar", "print the path of the jar", "Print the path of the jar, for --jars.")
    jar.add_argument(
        "--delta-api",
        action="store_true",
        help="print the path of the jar for Scala and Java programs, too, after a comma",
    )
    command(
        "examples",
        "print the folder of the example programs",
        "Print the folder of the example programs in Python, Scala and Java.",
    )
    return parser


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _print_settings() -> None:
    print(f"Deltaic {__version__}\njar: {jar_path()}\n\nSpark settings:")
    for name, value in spark_settings().items():
        print(f"  --conf {name}={value}")


def _inspect(path: str, *, as_json: bool) -> None:
    inspection = inspect_table(path)
    if as_json:
        print(json.dumps(inspection.to_json(), indent=2))
        return
    encoding = sys.stdout.encoding or "ascii"
    text = render(inspection, has_blocks=_can_encode(BLOCK, encoding))
    print(text.encode(encoding, "backslashreplace").decode(encoding), end="")


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _validate(path: str) -> int:
    validation = validate_table(path)
    for violation in validation.violations:
        print(one_line(str(violation)))
    print(validation)
    return 1 if validation.violations else 0


if __name__ == "__main__":
    sys.exit(main())
