"""Folders under the data root, on any file system that Spark supports."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class FolderSize:
    """The number and size of the files in a folder."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Storage:
    """The operations on Hadoop's file systems that the benchmark needs; they are not timed."""

    spark: SparkSession

    @property
    def _jvm(self) -> Any:
        return self.spark.sparkContext._jvm

    @property
    def _conf(self) -> Any:
        return self.spark.sparkContext._jsc.hadoopConfiguration()

    def _open(self, uri: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(uri)
        return path.getFileSystem(self._conf), path

    def delete(self, uri: str) -> None:
        """Delete a folder recursively; a no-op if it does not exist."""
        files, path = self._open(uri)
        files.delete(path, True)

    def move_only_file(self, pattern: str, target: str) -> None:
        """Move the only file that matches a pattern, within a file system."""
        files, path = self._open(pattern)
        found = list(files.globStatus(path))
        if len(found) != 1:
            raise FileNotFoundError(f"{len(found)} files match {pattern}")
        _, to = self._open(target)
        files.mkdirs(to.getParent())
        if not files.rename(found[0].getPath(), to):
            raise OSError(f"{pattern} cannot be moved to {target}")

    def clone(self, source: str, target: str) -> None:
        """Clone a table that never changes, with as little I/O as possible.

        On a local file system, data files are hard links, so that the clone shares the page cache
        of its source. Log files are copied, because ``_last_checkpoint`` is overwritten.
        """
        self.delete(target)
        if urlsplit(source).scheme == "file":
            shutil.copytree(local_path(source), local_path(target), copy_function=_link_or_copy)
        else:
            self.copy(source, target)

    def files(self, folder: str, suffix: str) -> list[tuple[str, int]]:
        """Return the names and bytes of the files in a folder that end so, by name."""
        files, path = self._open(folder)
        found = (
            (status.getPath().getName(), int(status.getLen())) for status in files.listStatus(path)
        )
        return sorted((name, size) for name, size in found if name.endswith(suffix))

    def touch(self, folder: str, names: Iterable[str]) -> None:
        """Create empty files below a folder."""
        if urlsplit(folder).scheme == "file":
            for name in names:
                file = local_path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
            return
        for name in names:
            files, path = self._open(f"{folder}/{name}")
            files.create(path).close()

    def copy(self, source: str, target: str) -> None:
        """Copy a folder, also between file systems."""
        from_files, from_path = self._open(source)
        to_files, to_path = self._open(target)
        self._jvm.org.apache.hadoop.fs.FileUtil.copy(
            from_files, from_path, to_files, to_path, False, self._conf
        )

    def size(self, uri: str) -> FolderSize:
        """Return the number and the total size of all files in a folder, recursively."""
        files, path = self._open(uri)
        summary = files.getContentSummary(path)
        return FolderSize(int(summary.getFileCount()), int(summary.getLength()))

    def data_files(self, uri: str) -> int:
        """Return the number of Parquet files directly in a folder."""
        files, _ = self._open(uri)
        return len(files.globStatus(self._jvm.org.apache.hadoop.fs.Path(uri, "*.parquet")))

    def read_text(self, uri: str) -> str | None:
        """Return the content of a small text file, or None if it does not exist."""
        files, path = self._open(uri)
        if not files.exists(path):
            return None
        stream = files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, uri: str, text: str) -> None:
        """Write a small text file; overwrite it if it exists."""
        files, path = self._open(uri)
        stream = files.create(path, True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()


def local_path(uri: str) -> Path:
    """Return the path of a file or folder in the local file system."""
    return Path(unquote(urlsplit(uri).path))


def _link_or_copy(source: str, target: str) -> None:
    if "_delta_log" in Path(source).parts:
        shutil.copy2(source, target)
    else:
        os.link(source, target)
