"""How often files are opened, by any process, as Linux reports it."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_OPENED = 0x20
_EVENT = struct.Struct("iIII")


class FileOpens:
    """Counts each time one of `files` is opened within a ``with`` block.

    Two events that nobody has read count as one to the kernel, so a thread reads all the time: the
    counts may be a little too small, and never too large.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = list(files)
        self._counts: Counter[Path] = Counter()
        self._libc = ctypes.CDLL(None, use_errno=True)

    @property
    def counts(self) -> dict[Path, int]:
        return dict(self._counts)

    def __enter__(self) -> FileOpens:
        self._events = self._libc.inotify_init1(os.O_CLOEXEC)
        self._watched = {}
        for file in self._files:
            watch = self._libc.inotify_add_watch(self._events, os.fsencode(file), _OPENED)
            assert watch >= 0, os.strerror(ctypes.get_errno())
            self._watched[watch] = file
        self._stop, stop = os.pipe()
        self._end = stop
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)
        self._reader.join()
        os.close(self._stop)
        os.close(self._events)

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._events, self._stop], [], [])
            if self._events in ready:
                self._count(os.read(self._events, 1 << 16))
            elif self._stop in ready:
                return

    def _count(self, events: bytes) -> None:
        at = 0
        while at < len(events):
            watch, _, _, name_bytes = _EVENT.unpack_from(events, at)
            at += _EVENT.size + name_bytes
            self._counts[self._watched[watch]] += 1
