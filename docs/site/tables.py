"""Tables of the guide, in Markdown, made of the JSON files of the package."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_RESOURCES = ROOT / "python" / "deltaic" / "resources"

#: Makes a table; the argument is the path of the decisions, for links from the page.
Table = Callable[[str], str]


def _resource(name: str) -> Any:
    return json.loads((_RESOURCES / name).read_text(encoding="utf-8"))


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines
    )


def _code(text: str) -> str:
    """Return a name or value as code."""
    return f"`{text}`"


def _sections(
    records: Sequence[Mapping[str, Any]], table: Callable[[Sequence[Mapping[str, Any]]], str]
) -> str:
    """Return a table under a heading for each section, in the order of the file."""
    parts = [
        f"## {section}\n\n{table(list(group))}"
        for section, group in groupby(records, key=lambda record: record["section"])
    ]
    return "\n\n".join(parts)


def settings(decisions: str) -> str:
    """Return the settings of a session, by section."""

    def row(record: Mapping[str, Any]) -> list[str]:
        names = _code(record["name"])
        if "formerName" in record:
            names += f"<br>or {_code(record['formerName'])}"
        return [names, _default(record.get("default")), _doc(record, decisions)]

    return _sections(
        _resource("settings.json"),
        lambda records: _rows(["setting", "default", "what it does"], map(row, records)),
    )


def _default(value: str | None) -> str:
    """Return a default; one with spaces is a description rather than a value."""
    if value is None:
        return ""
    return value if " " in value else _code(value)


def _doc(record: Mapping[str, Any], decisions: str) -> str:
    if "decision" not in record:
        return str(record["doc"])
    [page] = (ROOT / "docs" / "decisions").glob(f"{record['decision']}-*.md")
    return f"{record['doc']} ([details]({decisions}{page.name}))"


def options(decisions: str) -> str:
    """Return the options of readers and writers."""

    def row(record: Mapping[str, Any]) -> list[str]:
        name = _code(record["name"])
        if "otherName" in record:
            name += f"<br>or {_code(record['otherName'])}"
        return [name, ", ".join(record["for"]), record["doc"]]

    return _rows(["option", "for", "what it does"], map(row, _resource("options.json")))


def properties(decisions: str) -> str:
    """Return the properties that users set."""
    return _rows(
        ["property", "values", "default", "what it does"],
        (
            [_code(r["name"]), _values(r), _default(r.get("default")), _described(r)]
            for r in _resource("table-properties.json")
            if r.get("supported", True) and not r.get("internal", False)
        ),
    )


def _values(record: Mapping[str, Any]) -> str:
    if "values" in record:
        return ", ".join(map(_code, record["values"]))
    if "minimum" in record:
        return f"{record['type']}, from {record['minimum']} on"
    return str(record["type"])


def _described(record: Mapping[str, Any]) -> str:
    if "replacedBy" in record:
        return f"{record['doc']} Use {_code(record['replacedBy'])}."
    return str(record["doc"])


def refused_properties(decisions: str) -> str:
    """Return the properties that are refused, and what to do instead."""
    return _rows(
        ["property", "on a table that has it", "instead"],
        (
            [
                _code(r["name"]),
                "read, not written" if r.get("requiredByWriters") else "read and written",
                r["instead"],
            ]
            for r in _resource("table-properties.json")
            if not r.get("supported", True)
        ),
    )


def internal_properties(decisions: str) -> str:
    """Return the properties that only engines set."""
    return _rows(
        ["property", "what it says"],
        (
            [_code(r["name"]), r["doc"]]
            for r in _resource("table-properties.json")
            if r.get("internal", False)
        ),
    )


def features(decisions: str) -> str:
    """Return the table features."""

    def row(record: Mapping[str, Any]) -> list[str]:
        return [
            _code(record["name"]),
            record["doc"],
            "readers and writers" if record["kind"] == "readerWriter" else "writers",
            _enabled(record),
            ", ".join(map(_code, record["requires"])),
            "yes" if record["read"] else "no",
            "yes" if record["write"] else "no",
        ]

    heads = ["feature", "what it is", "concerns", "enabled by", "requires", "read", "write"]
    return _rows(heads, map(row, _resource("table-features.json")))


def _enabled(record: Mapping[str, Any]) -> str:
    """Return what makes a table use a feature."""
    ways = []
    if record["enabledBy"] is not None:
        values = " or ".join(_code(v) for v in record["enabledBy"]["value"].split("|"))
        ways.append(f"{_code(record['enabledBy']['property'])} = {values}")
    used = record.get("usedBy", {})
    ways += [f"a property {_code(name)}" for name in used.get("properties", ())]
    ways += [f"a column with {_code(name)}" for name in used.get("columnMetadata", ())]
    ways += [f"a column of type {_code(name.upper())}" for name in used.get("columnTypes", ())]
    return ", ".join(ways)


def metrics(decisions: str) -> str:
    """Return the operation metrics of the history, by operation."""
    resource = _resource("operation-metrics.json")
    docs = resource["metrics"]
    operations: dict[tuple[str, ...], list[str]] = {}
    for operation, names in resource["operations"].items():
        operations.setdefault(tuple(names), []).append(operation)
    extra = {
        "WRITE": [("that overwrites", "overwrites"), ("that replaces rows", "replacedRows")],
    }
    parts = []
    for names, of in operations.items():
        parts.append(f"### {', '.join(of)}\n")
        parts.append(_rows(["metric", "what it counts"], ([_code(n), docs[n]] for n in names)))
        for what, key in (case for name in of for case in extra.get(name, ())):
            added = ", ".join(_code(name) for name in resource[key])
            parts.append(f"\nA write {what} also has {added}.")
        parts.append("")
    return "\n".join(parts)


def results(decisions: str) -> str:
    """Return the result columns of each statement."""
    titles = {
        "describeHistory": "DESCRIBE HISTORY",
        "describeDetail": "DESCRIBE DETAIL",
        "describeDomainMetadata": "DeltaTable.domainMetadata",
        "cloneTable": "CLONE",
        "optimize": "OPTIMIZE, REORG",
        "convertToDelta": "CONVERT TO DELTA",
        "restore": "RESTORE",
        "vacuum": "VACUUM",
    }
    parts = []
    for name, columns in _resource("command-results.json").items():
        rows = [[_code(c.split(" ", 1)[0]), _type(c.split(" ", 1)[1])] for c in columns]
        parts.append(f"### {titles[name]}\n\n{_rows(['column', 'type'], rows)}\n")
    return "\n".join(parts)


def _type(ddl: str) -> str:
    """Return a type of Spark as code that may be broken between fields."""
    return _code(ddl)


def errors(decisions: str) -> str:
    """Return the error conditions by their class in Python."""
    conditions = sorted(
        _resource("error-conditions.json").items(),
        key=lambda item: (item[1]["pythonClass"], item[0]),
    )
    parts = []
    for python_class, group in groupby(conditions, key=lambda item: item[1]["pythonClass"]):
        parts.append(f"## {python_class}\n")
        parts += [_condition(name, record) for name, record in group]
    return "\n".join(parts)


def _condition(name: str, record: Mapping[str, Any]) -> str:
    what, *advice = record["message"]
    classes = f"SQLSTATE {_code(record['sqlState'])}, in Spark {_code(record['sparkClass'])}"
    parts = [f"### {name}\n", f"{_message(what)}\n"]
    parts.append(f"**What to do:** {_to_do(advice)}\n")
    parts.append(f"{classes}\n{{ .condition }}\n")
    return "\n".join(parts)


def _to_do(advice: Sequence[str]) -> str:
    """Return the advice of a message, which may be in a parameter."""
    if not advice:
        return "The message says which values are valid (<var>reason</var>)."
    parameter = re.fullmatch(r"(<\w+>)(?: Nothing was written\.)?", " ".join(advice))
    if parameter is not None:
        return f"The message says it ({_message(parameter[1])})."
    return " ".join(map(_message, advice))


def _message(text: str) -> str:
    """Return a message as Markdown: parameters in italics, and nothing else formatted."""
    escaped = re.sub(r"([\\`*_\[\]])", r"\\\1", html.escape(text, quote=False))
    return re.sub(r"&lt;([A-Za-z]+)&gt;", r"<var>\1</var>", escaped)


TABLES: Mapping[str, Table] = {
    "errors": errors,
    "features": features,
    "internal-properties": internal_properties,
    "metrics": metrics,
    "options": options,
    "properties": properties,
    "refused-properties": refused_properties,
    "results": results,
    "settings": settings,
}
