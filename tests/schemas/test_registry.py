"""Schema ids from a registry, here the one that confluent-kafka keeps in memory."""

from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from mainspring.schemas import CancelJob, Codec, DeadLetterReason, RegistryError, SubmitJob, UnreadableRecordError
from mainspring.schemas.avro_types import newest
from mainspring.schemas.registry import RegistryIds, publish_schemas, registry_client
from mainspring.topics import Topology

SUBJECTS = Topology(prefix="t.").subjects()
CANCEL = CancelJob(job_id="job-1", command_id="c", actor="me", requested_at_ms=5)


@pytest.fixture
def registry() -> SchemaRegistryClient:
    """An empty registry in memory."""
    return registry_client("mock://", {})


def published(registry: SchemaRegistryClient) -> SchemaRegistryClient:
    publish_schemas(registry, SUBJECTS, compatibility=None)
    return registry


def test_every_record_of_every_topic_is_published_under_topic_and_record_name(registry: SchemaRegistryClient) -> None:
    count = publish_schemas(registry, SUBJECTS, compatibility=None)

    assert count == len(SUBJECTS)
    assert set(registry.get_subjects()) == {subject for subject, _ in SUBJECTS}
    assert "t.commands-mainspring.SubmitJob" in registry.get_subjects()
    assert registry.get_latest_version("t.events-mainspring.JobStarted").schema == Schema(
        newest()["JobStarted"].text, "AVRO"
    )


def test_publishing_twice_changes_nothing(registry: SchemaRegistryClient) -> None:
    published(registry)
    before = {subject: registry.get_versions(subject) for subject in registry.get_subjects()}

    published(registry)

    assert {subject: registry.get_versions(subject) for subject in registry.get_subjects()} == before


def test_records_carry_the_ids_of_the_registry_and_come_back(registry: SchemaRegistryClient) -> None:
    # given a registry whose ids are not those of the lock
    for number in range(100):
        registry.register_schema(f"other-{number}", Schema('{"type": "record", "name": "Other", "fields": []}', "AVRO"))
    codec = Codec(RegistryIds(published(registry), SUBJECTS))

    encoded = codec.encode(CANCEL)

    registered = registry.lookup_schema("t.commands-mainspring.CancelJob", Schema(newest()["CancelJob"].text, "AVRO"))
    assert encoded[:5] == b"\x00" + (registered.schema_id or 0).to_bytes(4, "big")
    assert encoded[:5] != Codec.embedded().encode(CANCEL)[:5]
    assert codec.decode(encoded) == CANCEL


def test_a_registry_without_our_schemas_is_noticed_at_the_start_with_what_to_do(registry: SchemaRegistryClient) -> None:
    with pytest.raises(RegistryError, match="apply the topics first"):
        RegistryIds(registry, SUBJECTS)


def test_nothing_is_registered_by_writing(registry: SchemaRegistryClient) -> None:
    codec = Codec(RegistryIds(published(registry), SUBJECTS[:1]))
    before = len(registry.get_subjects())
    assert SUBJECTS[0][1] is SubmitJob

    with pytest.raises(RegistryError, match="CancelJob"):
        codec.encode(CANCEL)

    assert len(registry.get_subjects()) == before


def test_an_id_of_a_foreign_schema_is_an_unknown_type(registry: SchemaRegistryClient) -> None:
    codec = Codec(RegistryIds(published(registry), SUBJECTS))
    foreign = registry.register_schema("foreign", Schema('{"type": "record", "name": "Other", "fields": []}', "AVRO"))

    for schema_id in (foreign, 999_999):
        with pytest.raises(UnreadableRecordError) as refused:
            codec.decode(b"\x00" + schema_id.to_bytes(4, "big"))
        assert refused.value.reason is DeadLetterReason.UNKNOWN_TYPE


def test_a_registry_that_is_down_is_no_fault_of_the_record(registry: SchemaRegistryClient, monkeypatch: Any) -> None:
    codec = Codec(RegistryIds(published(registry), SUBJECTS))

    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("connection refused")

    monkeypatch.setattr(registry, "get_schema", refuse)

    with pytest.raises(RegistryError, match="connection refused"):
        codec.decode(b"\x00" + (999_999).to_bytes(4, "big"))


def test_a_wrong_option_of_the_registry_is_named() -> None:
    with pytest.raises(RegistryError, match=r"no\.such\.option"):
        Codec.from_registry("http://127.0.0.1:1", {"no.such.option": 1}, SUBJECTS)


def test_a_registry_that_does_not_answer_is_an_error_with_its_subject() -> None:
    options = {"max.retries": 0, "timeout": 1}

    with pytest.raises(RegistryError, match=r"t\.commands-mainspring\.SubmitJob"):
        Codec.from_registry("http://127.0.0.1:1", options, SUBJECTS)
