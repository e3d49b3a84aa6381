"""Schema ids from a registry that speaks the Confluent API (Confluent, Apicurio, Karapace…).

The `.avsc` files stay the truth; a registry is a publication of them. Subjects follow TopicRecordNameStrategy, since a
topic carries several records. Needs the extra `mainspring[registry]`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mainspring.schemas.avro_types import SchemaFile, newest, schema_files
from mainspring.schemas.errors import RegistryError

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

__all__ = ["RegistryIds", "Subject", "publish_schemas", "registry_client"]

Subject = tuple[str, type[Any]]
"""A subject of the registry and the record whose schemas it holds."""

_NOT_FOUND = 404
COMPATIBILITY = "FULL_TRANSITIVE"
"""Every version must read every other one: a log is read for years, by old and by new readers."""


def registry_client(url: str, options: Mapping[str, Any]) -> "SchemaRegistryClient":
    """A client for the registry at `url`; `options` are those of confluent-kafka's `SchemaRegistryClient`.

    Raises `RegistryError` if the extra is missing or an option is wrong.
    """
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError as error:
        raise RegistryError("a schema registry needs more packages: pip install 'mainspring[registry]'") from error
    try:
        return SchemaRegistryClient.new_client({"url": url, **options})
    except (TypeError, ValueError) as error:
        raise RegistryError(f"the options of the schema registry are wrong: {error}") from error


class RegistryIds:
    """Ids as the registry gives them; our own are looked up at once, so that no write waits for one later.

    Raises `RegistryError` if the registry lacks one of our schemas: `topics apply` registers them, never a write.
    """

    def __init__(self, client: "SchemaRegistryClient", subjects: Iterable[Subject]) -> None:
        self._client = client
        self._ids: dict[str, int] = {}
        for subject, kind in subjects:
            if kind.__name__ not in self._ids:
                self._ids[kind.__name__] = self._look_up(subject, newest()[kind.__name__])

    def _look_up(self, subject: str, file: SchemaFile) -> int:
        try:
            schema_id = self._client.lookup_schema(subject, _registered(file)).schema_id
        # The client lets every failure of its transport through, of whatever class its HTTP library has.
        except Exception as error:
            raise RegistryError(
                f"no id for {file.path} under subject {subject}: {error}; apply the topics first"
            ) from error
        if schema_id is None:
            raise RegistryError(f"the schema registry answered without an id for {file.path} under subject {subject}")
        return schema_id

    def id_of(self, file: SchemaFile) -> int:
        """The id of one of our own schemas."""
        schema_id = self._ids.get(file.record)
        if schema_id is None:
            raise RegistryError(f"no subject of this installation holds {file.full_name}")
        return schema_id

    def schema_of(self, schema_id: int) -> dict[str, Any] | None:
        """The schema behind an id, None if there is none; the client's cache answers from the second time on."""
        try:
            text = self._client.get_schema(schema_id).schema_str
        except Exception as error:
            if getattr(error, "http_status_code", None) == _NOT_FOUND:
                return None
            raise RegistryError(f"the schema registry does not tell what schema id {schema_id} is: {error}") from error
        schema = json.loads(text or "null")
        return schema if isinstance(schema, dict) else None


def publish_schemas(
    client: "SchemaRegistryClient", subjects: Iterable[Subject], compatibility: str | None = COMPATIBILITY
) -> int:
    """Registers every version of every record under its subjects, oldest first; returns the number of subjects.

    The registry is told to refuse what breaks `compatibility` (None leaves that as it is). Again changes nothing.

    Raises `RegistryError` at the first schema that the registry refuses.
    """
    count = 0
    for subject, kind in subjects:
        try:
            if compatibility is not None:
                client.set_compatibility(subject_name=subject, level=compatibility)
            for file in schema_files():
                if file.record == kind.__name__:
                    client.register_schema(subject, _registered(file))
        except Exception as error:
            raise RegistryError(f"the schema registry does not take subject {subject}: {error}") from error
        count += 1
    return count


def _registered(file: SchemaFile) -> "Schema":
    from confluent_kafka.schema_registry import Schema

    return Schema(file.text, "AVRO")
