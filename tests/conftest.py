"""Fixtures for every test: a shared Kafka, a topic prefix of one's own, a Kafka of one's own."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from mainspring.local import EmbeddedKafka
from tests.support import proofs, skips, spread
from tests.support.shared_broker import NoBrokerError, SharedBroker, ask

_ADDRESS = "shared_broker_address"
_DELETE_TIMEOUT_S = 30.0
_shared_broker = SharedBroker()


def pytest_configure(config: pytest.Config) -> None:
    """Let no test be skipped in CI unless it is listed with its reason; print what proofs have measured."""
    skips.install(config)
    proofs.install(config)
    config.pluginmanager.register(spread)
    # The schedulers that tests start keep their tables where nobody's own are.
    os.environ["XDG_STATE_HOME"] = str(Path(tempfile.gettempdir()) / f"mainspring-tests-{os.getpid()}")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a new xdist worker, before it starts, where to ask for the shared broker."""
    node.workerinput[_ADDRESS] = _shared_broker.serve()


def pytest_unconfigure() -> None:
    """End the shared broker with the run that started it."""
    _shared_broker.stop()
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> str:
    """The bootstrap of a Kafka that the whole run shares: keep to topics of your own (see `prefix`).

    Where there is none the test is skipped, in CI it fails.
    """
    workerinput = getattr(request.config, "workerinput", None)
    try:
        return ask(workerinput[_ADDRESS]) if workerinput else _shared_broker.bootstrap()
    except NoBrokerError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> Iterator[str]:
    """A prefix for topics, groups and transactional ids that no other test uses; its topics are deleted at the end."""
    own = f"t{secrets.token_hex(6)}."
    yield own
    if "kafka" in request.fixturenames:
        _delete_topics(request.getfixturevalue("kafka"), own)


def _delete_topics(bootstrap: str, prefix: str) -> None:
    """Every partition costs the broker memory and open files: hundreds of tests would slow each other down."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    found = [name for name in admin.list_topics(timeout=_DELETE_TIMEOUT_S).topics if name.startswith(prefix)]
    if found:
        for deletion in admin.delete_topics(found, operation_timeout=_DELETE_TIMEOUT_S).values():
            deletion.result()


@pytest.fixture
def broker() -> Iterator[EmbeddedKafka]:
    """A started Kafka of this test alone: to be killed, paused and restarted."""
    with EmbeddedKafka() as own:
        yield own
