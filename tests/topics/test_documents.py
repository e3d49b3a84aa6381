"""The generated documents say what the values say, and nothing in them leads nowhere."""

from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
import yaml
from tools.generate_docs import asyncapi_yaml, documented, topics_markdown

from mainspring.schemas.records import RECORDS
from mainspring.topics import Topology


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The AsyncAPI document, parsed."""
    parsed: dict[str, Any] = yaml.safe_load(asyncapi_yaml())
    return parsed


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_reference_of_the_document_leads_somewhere(document: dict[str, Any]) -> None:
    found = list(references(document))

    assert found
    for reference in found:
        node = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        assert node, reference


def test_the_document_is_asyncapi_3_with_the_bindings_as_kafka_spells_them(document: dict[str, Any]) -> None:
    assert document["asyncapi"] == "3.0.0"
    assert all("topicConfiguration" in channel["bindings"]["kafka"] for channel in document["channels"].values())
    assert all(message["bindings"]["kafka"]["key"] for message in document["components"]["messages"].values())


def test_every_record_is_a_message_with_an_avro_schema_that_parses(document: dict[str, Any]) -> None:
    messages = document["components"]["messages"]

    assert set(messages) == set(RECORDS)
    for name, message in messages.items():
        parsed = fastavro.parse_schema(message["payload"]["schema"])
        assert isinstance(parsed, dict)
        assert parsed["name"] == f"mainspring.{name}" == message["name"]


def test_every_topic_is_a_channel_with_its_partitions_and_policy(document: dict[str, Any]) -> None:
    channels = document["channels"]

    assert len(channels) == len(documented())
    assert channels["events"]["address"] == Topology().events.name
    binding = channels["events"]["bindings"]["kafka"]
    assert binding["partitions"] == 12
    assert binding["topicConfiguration"]["retention.ms"] == -1
    assert channels["work"]["address"] == "mainspring.work.{queue}.{priority}"
    assert set(channels["work"]["parameters"]) == {"queue", "priority"}


def test_only_commands_and_events_have_headers(document: dict[str, Any]) -> None:
    topology = Topology()
    headed = {name for name, message in document["components"]["messages"].items() if "headers" in message}

    assert headed == {kind.__name__ for topic in (topology.commands, topology.events) for kind in topic.values}


def test_the_page_about_topics_has_every_topic_with_its_reason() -> None:
    page = topics_markdown()

    for name, topic in documented():
        assert f"## `{name}`\n\n{topic.why}\n" in page
