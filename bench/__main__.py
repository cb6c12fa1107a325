"""The command line: ``python -m bench --help``."""

from __future__ import annotations

import argparse
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from bench.engines import ENGINES, SUBJECT, VARIANT
from bench.report import Report
from bench.results_page import publish
from bench.runner import Runner
from bench.scenarios import BY_NAME
from bench.settings import LOCAL_CACHE, REPOSITORY, SPARK_TEMPORARY, Settings, quick_scale, root_uri

_RESULTS = REPOSITORY / "bench" / "results"
_PAGE = REPOSITORY / "bench" / "RESULTS.md"

#: Not committed: of smoke tests and of selected queries, and what newer results supersede.
_LOCAL_RESULTS = LOCAL_CACHE / "results"
_DEFAULT_ENGINES = [name for name in ENGINES if name != VARIANT]
# delta-spark with default settings runs the same code as tuned, but with jobs of 50 tasks.
_QUICK_ENGINES = [name for name in _DEFAULT_ENGINES if name != "delta"]
_LOGS = LOCAL_CACHE / "logs"


def main() -> int:
    """Run the scenarios that the command line selects; return 1 if one failed."""
    options = _parser().parse_args()
    if options.list:
        for name, scenario in BY_NAME.items():
            print(f"{name}: {(scenario.__doc__ or '').partition(chr(10))[0]}")
        return 0
    if options.results:
        _publish()
        return 0
    settings = _settings(options)
    chosen = options.engines or (_QUICK_ENGINES if settings.quick else _DEFAULT_ENGINES)
    engines = [ENGINES[name] for name in chosen]
    report = Report(
        command=shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
        settings=settings,
        engines={engine.name: engine.summary for engine in engines},
        subject=SUBJECT,
        started=datetime.now().astimezone(),
    )
    is_local = settings.quick or settings.queries
    folder = options.out or (_LOCAL_RESULTS if is_local else _RESULTS)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    shutil.rmtree(_LOGS, ignore_errors=True)
    runner = Runner(engines, settings, _LOGS, options.timeout, options.rounds)
    try:
        for name in options.only:
            result = runner.run(BY_NAME[name]())
            report.results.append(result)
            report.facts = runner.facts
            written = report.write(folder)
            if result.error is not None:
                print(f"FAILED {name}: {result.error}", file=sys.stderr, flush=True)
    finally:
        runner.close()
        shutil.rmtree(SPARK_TEMPORARY, ignore_errors=True)
    print(f"\n{report.table()}\n\nWritten to {written}")
    if folder.resolve() == _RESULTS:
        _publish()
    return 1 if report.failures else 0


def _publish() -> None:
    """Rewrite the page of results, and move raw results that it does not cite to `build`."""
    moved = publish(_RESULTS, _PAGE, _LOCAL_RESULTS)
    print(f"{_PAGE} is up to date")
    for path in moved:
        print(f"Newest result of no scenario, moved to {path}")


def _settings(options: argparse.Namespace) -> Settings:
    scale = quick_scale(options.scale) if options.quick else options.scale
    return Settings(
        data=root_uri(options.data),
        scale=1.0 if scale is None else scale,
        quick=options.quick,
        master=options.master,
        driver_memory=options.driver_memory,
        shuffle_partitions=options.shuffle_partitions,
        tpc_scale_factor=options.tpc_scale or (0.01 if options.quick else 1.0),
        queries=tuple(options.queries),
        confs=dict(options.conf),
    )


def _parser() -> argparse.ArgumentParser:
    defaults = Settings()
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--list", action="store_true", help="list the scenarios and stop")
    add("--results", action="store_true", help="rewrite bench/RESULTS.md, then stop")
    defaults_to_run = [name for name, scenario in BY_NAME.items() if not scenario.by_name_only]
    add("--only", nargs="+", metavar="NAME", choices=BY_NAME, default=defaults_to_run)
    add("--engines", nargs="+", metavar="NAME", choices=ENGINES, help=f"of {', '.join(ENGINES)}")
    add("--scale", type=_positive(float), help="times 10 million rows in the large tables")
    add("--tpc-scale", type=_positive(float), help="scale factor of TPC-DS and TPC-H (1)")
    add("--queries", nargs="+", default=[], metavar="NAME", help="of TPC-DS and TPC-H, such as q3")
    add("--quick", action="store_true", help="a smoke test: tiny tables, one round")
    add("--rounds", type=_positive(int), help="rounds per scenario, instead of its own number")
    add("--out", type=Path, help="folder of the result files (bench/results)")
    add("--data", default=defaults.data, help="folder or URI of all tables (build/bench)")
    add("--master", default=defaults.master)
    add("--driver-memory", default=defaults.driver_memory)
    add("--shuffle-partitions", type=_positive(int), default=defaults.shuffle_partitions)
    add("--conf", type=_key_value, action="append", default=[], metavar="KEY=VALUE")
    add("--timeout", type=_positive(float), default=1800.0, help="seconds for one piece of work")
    return parser


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


def _positive(kind: type[float] | type[int]) -> Callable[[str], float | int]:
    def parse(text: str) -> float | int:
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    parse.__name__ = kind.__name__
    return parse


if __name__ == "__main__":
    sys.exit(main())
