"""The list of the slowest tests at the end of `make test`."""

from __future__ import annotations

from pathlib import Path

from tests.support.slowest import slowest


def report(path: Path, *cases: tuple[str, float]) -> Path:
    tests = "".join(f'<testcase classname="suite" name="{n}" time="{t}"/>' for n, t in cases)
    path.write_text(f"<testsuites><testsuite>{tests}</testsuite></testsuites>", encoding="utf-8")
    return path


def test_slowest_tests_of_all_reports_come_first(tmp_path: Path) -> None:
    first = report(tmp_path / "a.xml", ("quick", 0.1), ("slow", 9.0))
    second = report(tmp_path / "b.xml", ("slower", 12.5), ("quicker", 0.01))
    assert slowest([first, second], 2) == [(12.5, "suite slower"), (9.0, "suite slow")]
    assert len(slowest([first, second])) == 4
