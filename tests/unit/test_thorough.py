"""The list of variants that only `make test-thorough` runs."""

from __future__ import annotations

from pathlib import Path

from tests.support.paths import ROOT
from tests.support.thorough import listed, slowest_variants, variants_left_out


def test_each_listed_test_exists() -> None:
    for variant in listed():
        module, _, name = variant.partition("::")
        test = name.partition("[")[0]
        assert f"def {test}(" in (ROOT / module).read_text(encoding="utf-8"), variant


def test_the_slowest_variants_are_chosen_and_one_of_each_test_stays(tmp_path: Path) -> None:
    cases = {"a[1]": 9, "a[2]": 5, "a[3]": 7, "b": 20, "c[x]": 30, "d[1]": 1, "d[2]": 2}
    report = tmp_path / "report.xml"
    tests = "".join(
        f'<testcase classname="tests.spark.test_x" name="test_{n}" time="{t}"/>'
        for n, t in cases.items()
    )
    report.write_text(f"<testsuite>{tests}</testsuite>", encoding="utf-8")
    prefix = "tests/spark/test_x.py::test_"
    assert slowest_variants([report], 10) == [f"{prefix}a[1]", f"{prefix}a[3]"]
    assert slowest_variants([report], 100) == [f"{prefix}{n}" for n in ("a[1]", "a[3]", "d[2]")]


def test_variants_of_a_test_are_left_out_and_no_test_is() -> None:
    one, two = "tests/spark/x/test_a.py::test_a", "tests/peers/test_b.py::test_b"
    node_ids = [
        *(f"{one}[{n}]" for n in range(9)),
        *("tests/spark/x/test_a.py::test_plain", "tests/unit/test_c.py::test_c[0]"),
        *("tests/unit/test_c.py::test_c[1]", *(f"{two}[{n}]" for n in range(9))),
    ]
    left_out = [
        *(f"{one}[{n}]" for n in (1, 2, 3, 5, 6, 7)),
        *(f"{two}[{n}]" for n in (1, 2, 3, 4, 5, 7, 8)),
    ]
    assert list(variants_left_out(node_ids)) == left_out
