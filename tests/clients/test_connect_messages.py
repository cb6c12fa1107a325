"""The messages of clients: those that delta-spark publishes are declared as in its package."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.resources import load_json
from deltaic.spark.connect.messages import encode
from tests.support.spark_process import SparkProcess

#: The declaration in our format, from the descriptors of delta-spark's generated classes.
PUBLISHED = """
from delta.connect.proto import base_pb2, commands_pb2, relations_pb2
from google.protobuf.descriptor import FieldDescriptor as F

SCALARS = {
    F.TYPE_STRING: "string", F.TYPE_BOOL: "bool", F.TYPE_INT32: "int32", F.TYPE_INT64: "int64",
    F.TYPE_DOUBLE: "double",
}
result = {}

def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry

def kind(field):
    if is_map(field):
        key, value = field.message_type.fields
        assert key.type == value.type == F.TYPE_STRING
        return "{string}"
    named = field.message_type or field.enum_type
    one = named.full_name if named is not None else SCALARS[field.type]
    return f"[{one}]" if field.is_repeated else one

def declare(message):
    if not message.GetOptions().map_entry:
        result[message.full_name] = {f.name: f"{f.number} {kind(f)}" for f in message.fields}
    for inner in message.nested_types:
        declare(inner)
    for enum in message.enum_types:
        result[enum.full_name] = {value.name: str(value.number) for value in enum.values}

for module in (base_pb2, commands_pb2, relations_pb2):
    for message in module.DESCRIPTOR.message_types_by_name.values():
        declare(message)
"""


def test_messages_of_delta_spark_are_declared_as_it_publishes_them(
    connect_client: SparkProcess,
) -> None:
    published = connect_client.run(PUBLISHED)
    declared = load_json("connect-messages.json")
    assert {k: v for k, v in declared.items() if k.startswith("delta.")} == published


DECODE = """
from delta.connect.proto import commands_pb2, relations_pb2
from google.protobuf.json_format import MessageToDict
module = commands_pb2 if hasattr(commands_pb2, message) else relations_pb2
parsed = getattr(module, message).FromString(bytes.fromhex(sent))
result = MessageToDict(parsed, preserving_proto_field_name=True)
"""


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (
            "CloneTable",
            {
                "table": {"path": {"path": "/ä", "hadoop_conf": {"fs.a": "1", "fs.b": ""}}},
                "target": "x" * 300,
                "version": 2**31 - 1,
                "is_shallow": True,
                "properties": {"a": "b"},
            },
        ),
        ("OptimizeTable", {"partition_filters": ["a", "b"], "zorder_columns": ["c"]}),
        ("VacuumTable", {"table": {"table_or_view_name": "t"}, "retention_hours": 0.5}),
    ],
)
def test_delta_spark_reads_what_is_encoded(
    connect_client: SparkProcess, message: str, fields: dict[str, Any]
) -> None:
    sent = encode(f"delta.connect.{message}", fields, client=None)
    assert connect_client.run(DECODE, message=message, sent=sent.hex()) == fields


@pytest.mark.parametrize("number", [0, 127, 128, -1, 2**63 - 1, -(2**63)])
def test_delta_spark_reads_numbers_of_each_length(
    connect_client: SparkProcess, number: int
) -> None:
    sent = encode("delta.connect.RestoreTable", {"version": number}, client=None)
    found = connect_client.run(DECODE, message="RestoreTable", sent=sent.hex())
    assert found == {"version": str(number)}


SEND = """
from deltaic.exceptions import DeltaError
from deltaic.spark.connect.errors import convert_server_exceptions
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LogicalPlan
import pyspark.sql.connect.proto as proto

class Raw(LogicalPlan):
    def plan(self, session):
        relation = self._create_proto_relation()
        relation.extension.type_url = "type.googleapis.com/" + message
        relation.extension.value = bytes.fromhex(sent)
        return relation

convert_server_exceptions()
try:
    if message.endswith("Command"):
        command = proto.Command()
        command.extension.CopyFrom(Raw(None).plan(None).extension)
        result = spark.client.execute_command(command)
    else:
        result = DataFrame(Raw(None), spark).collect()
except DeltaError as e:
    result = [e.condition, e.parameters["message"], e.parameters["reason"]]
"""


@pytest.mark.parametrize(
    ("message", "sent", "about", "reason"),
    [
        ("delta.connect.DeltaRelation", b"", None, "one of its alternatives, and here none"),
        ("delta.connect.DeltaRelation", b"\x5a\x00", None, "does not know its field 11"),
        ("delta.connect.DeltaRelation", b"\x0a\xff", None, "input"),
        ("delta.connect.DeltaRelation", b"\x0a\x00", "Scan", "table is missing"),
        (
            "delta.connect.DeltaRelation",
            b"\x0a\x00\x32\x00",
            None,
            "and here is_delta_table, scan",
        ),
        (
            "delta.connect.DeltaRelation",
            b"\x2a\x0a\x0a\x08\x0a\x06\x0a\x04/tmp",
            "RestoreTable",
            "one of its alternatives, and here none",
        ),
        ("delta.connect.DeltaCommand", b"", None, "one of its alternatives, and here none"),
        ("delta.connect.DeltaCommand", b"\x2a\x02\x08\x07", "CreateDeltaTable", "value 7 of mode"),
        ("delta.connect.DeltaCommand", b"\x2a\x00", "CreateDeltaTable", "MODE_UNSPECIFIED"),
        (
            "deltaic.connect.TableCall",
            encode("deltaic.connect.TableCall", {"method": "fly", "arguments": "{}"}, None),
            None,
            "no method fly",
        ),
        (
            "deltaic.connect.TableCall",
            encode("deltaic.connect.TableCall", {"method": "resolveName", "arguments": "{}"}, None),
            None,
            "the argument name is missing",
        ),
    ],
)
def test_message_that_cannot_be_run_is_named(
    connect_client: SparkProcess, message: str, sent: bytes, about: str | None, reason: str
) -> None:
    found = connect_client.run(SEND, message=message, sent=sent.hex())
    condition, named, because = found
    expected = message if about is None else f"delta.connect.{about}"
    assert (condition, named) == ("DELTAIC_CONNECT_MESSAGE_INVALID", expected), json.dumps(found)
    assert reason in because


def test_settings_that_are_not_of_a_file_system_are_refused(
    connect_client: SparkProcess,
) -> None:
    path = {"path": "/t", "hadoop_conf": {"spark.sql.ansi.enabled": "false"}}
    scan = {"scan": {"table": {"path": path}}}
    sent = encode("delta.connect.DeltaRelation", scan, client=None)
    code = SEND.replace('[e.condition, e.parameters["message"], e.parameters["reason"]]', "str(e)")
    found = connect_client.run(code, message="delta.connect.DeltaRelation", sent=sent.hex())
    assert "spark.sql.ansi.enabled" in found and "hadoopConf" in found
