"""Numbers as people read them."""

from __future__ import annotations

from datetime import datetime, timezone

_BYTES = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_SPANS = (
    ("day", 86_400_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1_000),
)


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "file"), count(12345, "file")
    ('1 file', '12,345 files')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """Return a number of bytes, with units of 1,024.

    Examples
    --------
    >>> size(0), size(1000), size(64 * 1024**2), size(1536)
    ('0 B', '1,000 B', '64 MB', '1.5 KB')
    """
    value, unit = float(number), 0
    while value >= 1024 and unit < len(_BYTES) - 1:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or value >= 100 else 1
    text = f"{value:,.{digits}f}"
    return f"{text.removesuffix('.0')} {_BYTES[unit]}"


def percent(ratio: float) -> str:
    """Return a share.

    Examples
    --------
    >>> percent(0.05), percent(0.123), percent(0.00001), percent(0)
    ('5 %', '12.3 %', 'less than 0.1 %', '0 %')
    """
    if 0 < ratio < 0.001:
        return "less than 0.1 %"
    text = f"{ratio * 100:.1f}"
    return f"{text.removesuffix('.0')} %"


def duration(milliseconds: int) -> str:
    """Return a length of time in its largest unit, rounded down.

    Examples
    --------
    >>> duration(604_800_000), duration(5_400_000), duration(10)
    ('7 days', '1 hour', 'less than a second')
    """
    for noun, length in _SPANS:
        if milliseconds >= length:
            return count(milliseconds // length, noun)
    return "less than a second"


def time_text(timestamp_ms: int) -> str:
    """Return a time in UTC; the number itself if it is out of the range of dates.

    Examples
    --------
    >>> time_text(0)
    '1970-01-01 00:00:00 UTC'
    """
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
