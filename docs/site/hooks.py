"""What `mkdocs` does with the pages besides: it fills in tables, and follows links out of `docs`.

- A comment such as ``<!-- table: settings -->`` stands for a table that `docs.site.tables` makes
  of the JSON files of the package.
- A link to a file of the repository outside of ``docs`` leads to a page that is made of it, if it
  is one of `PAGES`. Another one is only text: the site has no place to lead to.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from docs.site.tables import TABLES

ROOT = Path(__file__).resolve().parents[2]

#: Files outside of ``docs`` that are pages of the site, and where.
PAGES: Mapping[str, str] = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "bench/README.md": "project/benchmark.md",
    "bench/RESULTS.md": "project/results.md",
    **{
        str(path.relative_to(ROOT)): f"project/{path.stem}.md"
        for path in sorted((ROOT / "examples").glob("*.py"))
    },
}
#: Files outside of ``docs`` whose contents a page of ``docs`` has, too.
_SAME_AS: Mapping[str, str] = {"README.md": "index.md"}

_TABLE = re.compile(r"^<!-- table: (?P<name>[a-z-]+) -->$", re.M)
_LINK = re.compile(
    r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s#]*)(?P<anchor>#[^()\s]*)?\)"
)
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.M | re.S)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of files outside of ``docs``."""
    for source, place in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source.endswith(".py"):
            text = f"# {source}\n\n```python\n{text}```\n"
        files.append(File.generated(config, place, content=_linked(text, source, place)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill in the tables of a page, and change its links that lead out of ``docs``."""
    source = page.file.src_uri
    if source.startswith("project/"):
        return markdown
    depth = "../" * source.count("/")
    filled = _TABLE.sub(lambda found: TABLES[found["name"]](f"{depth}decisions/"), markdown)
    return _linked(filled, f"docs/{source}", source)


def _linked(markdown: str, source: str, place: str) -> str:
    """Change the links of a page, except for those in examples.

    Parameters
    ----------
    source
        The file of the page, from the root of the repository.
    place
        The page, from the root of the site.
    """
    return "".join(
        part if part.lstrip(" ").startswith("```") else _LINK.sub(_replaced(source, place), part)
        for part in _FENCED.split(markdown)
    )


def _replaced(source: str, place: str) -> Any:
    def replace(found: re.Match[str]) -> str:
        target, anchor = found["target"], found["anchor"] or ""
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if not (ROOT / path).exists():
            return found[0]  # mkdocs reports it
        page = _SAME_AS.get(path, PAGES.get(path))
        if page is None and path.startswith("docs/"):
            page = path.removeprefix("docs/")
            page = f"{page}/README.md" if (ROOT / path).is_dir() else page
        if page is None:
            return found["text"]
        return (
            f"[{found['text']}]({posixpath.relpath(page, posixpath.dirname(place) or '.')}{anchor})"
        )

    return replace
