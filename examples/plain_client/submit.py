r"""Submits a job with a plain Kafka client and an Avro library: no Mainspring package is needed.

    pip install confluent-kafka fastavro
    python submit.py --bootstrap 127.0.0.1:9092 --schema SubmitJob.v1.avsc --schema-id 12 \
        --name hello --payload '{"who": "world"}'

What any language has to do is in `submit_record`: fill in the record, encode it with the schema, put five bytes before
it, and use the job id as the key. See README.md for where the schema id comes from.
"""

import argparse
import getpass
import io
import json
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import KafkaError, Message, Producer

FLUSH_TIMEOUT_S = 30.0


def submit_record(schema: Any, schema_id: int, job: dict[str, Any], actor: str) -> tuple[bytes, bytes]:
    """Key and value of the record that asks for `job` (fields of JobSpec; those left out get the schema's defaults)."""
    command = {
        "command_id": str(uuid.uuid4()),  # the same id twice is the same command, so keep it when you send again
        "actor": actor,
        "requested_at_ms": time.time_ns() // 1_000_000,
        "spec": {"payload": b"", **job},
    }
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), command)
    header = b"\x00" + schema_id.to_bytes(4, "big")
    return job["job_id"].encode(), header + body.getvalue()


def submit(bootstrap: str, topic: str, key: bytes, value: bytes) -> None:
    """Writes the record and returns once Kafka has it. Raises SystemExit if Kafka does not take it."""
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            # The partition of a key must be the one that the scheduler expects. Java's clients choose it so by default;
            # librdkafka and what is built on it (Python, Go, .NET, Node, Rust) have to be told.
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
        }
    )
    producer.produce(topic, value, key, on_delivery=on_delivery)
    if producer.flush(FLUSH_TIMEOUT_S) or failures:
        raise SystemExit(f"not submitted: {failures[0] if failures else 'Kafka did not answer in time'}")


def main(arguments: list[str] | None = None) -> None:
    """Submits one job and prints its id."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--topic", default="mainspring.commands")
    parser.add_argument("--schema", type=Path, required=True, help="path of SubmitJob.v1.avsc")
    parser.add_argument("--schema-id", type=int, required=True, help="its id: from schemas.lock or from your registry")
    parser.add_argument("--name", required=True, help="registered name of the job's handler")
    parser.add_argument("--payload", default="{}", help="arguments of the handler, as JSON")
    parser.add_argument("--job-id", default=None, help="by default a new one")
    parser.add_argument("--delay-ms", type=int, default=None)
    given = parser.parse_args(arguments)

    job = {
        "job_id": given.job_id or str(uuid.uuid4()),
        "name": given.name,
        "payload": json.dumps(json.loads(given.payload)).encode(),
        "delay_ms": given.delay_ms,
    }
    schema = json.loads(given.schema.read_text(encoding="utf-8"))
    key, value = submit_record(schema, given.schema_id, job, actor=getpass.getuser())
    submit(given.bootstrap, given.topic, key, value)
    sys.stdout.write(job["job_id"] + "\n")


if __name__ == "__main__":
    main()
