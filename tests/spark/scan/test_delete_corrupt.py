"""A deletion vector that cannot be trusted is an error that says which; never rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table

LARGE = 5_000

CORRUPT = "DELTAIC_DELETION_VECTOR_CORRUPT"
INVALID = "DELTAIC_DELETION_VECTOR_DESCRIPTOR_INVALID"
MISSING = "DELTAIC_DELETION_VECTOR_FILE_MISSING"


@pytest.fixture(scope="module")
def original(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a stored vector, one with an inline vector, and one without."""
    path = tmp_path_factory.mktemp("corrupt") / "original"
    starts_and_counts = [(0, LARGE), (LARGE, 20), (2 * LARGE, 10)]
    files = [[(i,) for i in range(start, start + count)] for start, count in starts_and_counts]
    build_table(spark, str(path), "id BIGINT", files)
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxInlineBytes": "256"}):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 3 = 0 AND id < {2 * LARGE}")
    return path


@pytest.fixture
def copied(original: Path, table: str) -> str:
    log.copy_table(original, table)
    # Spark's local file system would notice changed bytes itself, by files that other stores lack.
    for crc in Path(table).rglob("*.crc"):
        crc.unlink()
    return table


def of_storage(table: str, storage_type: str) -> log.Action:
    [found] = [
        add
        for add in log.active_files(table)
        if add.get("deletionVector", {}).get("storageType") == storage_type
    ]
    return found


def flip(content: bytearray, at: int) -> bytearray:
    content[at] ^= 0x40
    return content


def descriptor_change(**changes: int) -> Callable[[log.Action], None]:
    def change(vector: log.Action) -> None:
        for name, by in changes.items():
            vector[name] += by

    return change


def replaced_text(vector: log.Action) -> None:
    text = vector["pathOrInlineDv"]
    vector["pathOrInlineDv"] = text[:-5] + "00000"


def assert_refused(spark: SparkSession, table: str, add: log.Action, condition: str) -> None:
    """Reading any row of the file, and changing it, fails and names what is damaged."""
    dv_id = log.dv_id(add)
    versions = log.versions(table)
    low = log.statistics(add)["minValues"]["id"]
    for statement in (
        f"SELECT * FROM delta.`{table}` WHERE id = {low + 1}",
        f"SELECT sum(id) FROM delta.`{table}`",
        f"DELETE FROM delta.`{table}` WHERE id = {low + 1}",
    ):
        with pytest.raises(Exception, match=rf"\[{condition}\]") as caught:
            spark.sql(statement).collect()
        message = str(caught.value)
        assert table in message
        assert add["path"] in message
        assert dv_id is not None
        assert dv_id.split("@")[0] in message
    assert log.versions(table) == versions, "a failed DELETE was committed"


@pytest.mark.protocol("dv-step-2-reading-the-current-state-1")
@pytest.mark.parametrize(
    ("damage", "condition"),
    [
        (lambda content: flip(content, 0), "DELTAIC_DELETION_VECTOR_FORMAT_UNSUPPORTED"),
        (lambda content: flip(content, 2), CORRUPT),
        (lambda content: flip(content, 5), CORRUPT),
        (lambda content: flip(content, len(content) // 2), CORRUPT),
        (lambda content: flip(content, len(content) - 1), CORRUPT),
        (lambda content: content[: len(content) // 2], CORRUPT),
        (lambda content: content[:3], CORRUPT),
        (lambda content: content[:0], CORRUPT),
        (lambda content: None, MISSING),
    ],
    ids=[
        "unknown version byte",
        "other size in the file",
        "other magic number",
        "flipped bit in the bitmap",
        "flipped bit in the checksum",
        "half the file",
        "three bytes",
        "empty file",
        "no file",
    ],
)
def test_damaged_vector_file_is_refused(
    spark: SparkSession,
    copied: str,
    damage: Callable[[bytearray], bytearray | None],
    condition: str,
) -> None:
    [name] = log.files_in(copied, ".bin")
    path = Path(copied, name)
    damaged = damage(bytearray(path.read_bytes()))
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    assert_refused(spark, copied, of_storage(copied, "u"), condition)


@pytest.mark.parametrize(
    ("storage_type", "change", "condition"),
    [
        ("u", descriptor_change(cardinality=1), CORRUPT),
        ("u", descriptor_change(cardinality=-1), CORRUPT),
        ("u", descriptor_change(sizeInBytes=1), CORRUPT),
        ("u", descriptor_change(offset=7), CORRUPT),
        ("u", descriptor_change(offset=1_000_000), CORRUPT),
        ("i", descriptor_change(cardinality=1), CORRUPT),
        ("i", descriptor_change(sizeInBytes=4), INVALID),
        ("i", replaced_text, CORRUPT),
        ("i", lambda vector: vector.update(pathOrInlineDv="\u00e4~|"), INVALID),
        ("i", lambda vector: vector.update(storageType="x"), INVALID),
    ],
    ids=[
        "cardinality too high",
        "cardinality too low",
        "size differs from the file's",
        "offset within the vector",
        "offset beyond the end",
        "inline: cardinality too high",
        "inline: size too large",
        "inline: other bytes",
        "inline: not base 85",
        "unknown storage type",
    ],
)
def test_wrong_descriptor_is_refused(
    spark: SparkSession,
    copied: str,
    storage_type: str,
    change: Callable[[log.Action], None],
    condition: str,
) -> None:
    damaged = of_storage(copied, storage_type)
    path = log.commit_path(copied, 1)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries:
        if entry.get("add", {}).get("path") == damaged["path"]:
            change(entry["add"]["deletionVector"])
            damaged = entry["add"]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert_refused(spark, copied, damaged, condition)


def test_files_without_a_damaged_vector_can_still_be_read(spark: SparkSession, copied: str) -> None:
    [name] = log.files_in(copied, ".bin")
    Path(copied, name).unlink()
    rows = spark.sql(f"SELECT id FROM delta.`{copied}` WHERE id >= {LARGE} ORDER BY id").collect()
    expected = [i for i in range(LARGE, LARGE + 20) if i % 3] + list(
        range(2 * LARGE, 2 * LARGE + 10)
    )
    assert [row[0] for row in rows] == expected
