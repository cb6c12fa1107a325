"""Each demand of the protocol has a test, or a note that says why not."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from tests.support.paths import ROOT, shared_folder
from tests.support.protocol_page import PAGE, marks, page, requirements

_DEMAND = re.compile(r"\b(must|should)\b", re.IGNORECASE)


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(requirements()), "run make docs"


def test_each_demand_has_a_test_or_a_note() -> None:
    listed = requirements()
    assert len(listed) > 200
    assert [r.name for r in listed if not r.tests and not r.gap] == []


def test_names_are_unique_and_tests_use_no_other() -> None:
    names = Counter(requirement.name for requirement in requirements())
    assert [name for name, count in names.items() if count > 1] == []
    assert marks().keys() - names.keys() == set()


@pytest.mark.parametrize("document", ["protocol-newest.txt", "deletion-vectors-design.txt"])
def test_each_sentence_with_a_demand_is_listed(document: str) -> None:
    shared = shared_folder()
    if shared is None:
        pytest.skip("the editions of the protocol are not beside the checkout")
    text = (shared / "protocol" / document).read_text(encoding="utf-8")
    demanding = {n for n, line in enumerate(text.splitlines(), 1) if _DEMAND.search(line)}
    listed = {r.line for r in requirements() if r.document == document}
    descriptive = json.loads((ROOT / "tests/protocol-descriptions.json").read_text())[document]
    # Items of a list may be demands by the sentence before it.
    assert demanding - listed == set(descriptive)
