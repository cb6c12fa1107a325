"""Markdown tables and rounded figures."""

from __future__ import annotations

from collections.abc import Sequence

_LARGE_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table without the columns that are empty in all rows."""
    shown = [column for column in range(len(header)) if any(row[column] for row in rows)]
    if not shown:
        return []
    return [
        _line([header[column] for column in shown]),
        _line(["---"] * len(shown)),
        *(_line([row[column] for column in shown]) for row in rows),
    ]


def details(summary: str, lines: Sequence[str]) -> list[str]:
    """Return the lines of a section that readers expand."""
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>"]


def duration(seconds: float) -> str:
    """Return a duration with two or three digits."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.00995 else f"{seconds * 1000:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:,.0f} s"


def ratio(value: float) -> str:
    """Return a ratio with two or three digits."""
    if value < 1.995:
        return f"{value:.2f}x"
    return f"{value:.1f}x" if value < 9.95 else f"{value:,.0f}x"


def amount(value: float, *, is_bytes: bool) -> str:
    """Return an amount: bytes in the largest unit that fits, small fractions with three digits."""
    if is_bytes:
        for size, unit in _LARGE_UNITS:
            if value >= size:
                return f"{value / size:.3g} {unit}"
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.3g}"


def _line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
