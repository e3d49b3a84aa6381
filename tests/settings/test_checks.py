"""Rules that span settings, and warnings."""

import pytest

from mainspring.settings import Settings, SettingsError


def refused(**flags: object) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings.load(environ={}, flags={name.replace("__", "."): value for name, value in flags.items()})
    return str(caught.value)


def test_three_heartbeats_must_fit_into_a_lease() -> None:
    assert "three heartbeats (3000 ms each) must fit into a lease (8999 ms)" in refused(worker__lease_ms=8999)
    assert Settings.load(environ={}, flags={"worker.lease_ms": 9000}).worker.lease_ms == 9000


def test_a_transaction_must_time_out_before_a_lease_does() -> None:
    assert "scheduler.transaction_timeout_ms" in refused(scheduler__transaction_timeout_ms=10_000)


def test_more_in_sync_copies_than_copies_are_refused() -> None:
    assert "2 in-sync copies cannot be had from 1" in refused(topics__min_isr=2)


def test_a_worker_with_an_identity_in_the_group_needs_a_name_that_stays() -> None:
    assert "set worker.id to a name that no other worker has" in refused(worker__static_member=True)
    flags = {"worker.static_member": True, "worker.id": "w-0"}
    assert Settings.load(environ={}, flags=flags).worker_config().static_member


def test_a_worker_may_only_serve_declared_queues() -> None:
    text = refused(worker__queues="default,mial")

    assert "mial: no such queue" in text
    assert "declared: default" in text


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"kafka.sasl_mechanism": "PLAIN", "kafka.sasl_username": "u", "kafka.sasl_password": "p"}, "SASL_SSL"),
        (
            {"kafka.security_protocol": "SASL_SSL", "kafka.sasl_mechanism": "SCRAM-SHA-512"},
            "needs kafka.sasl_username and kafka.sasl_password",
        ),
    ],
)
def test_half_set_up_authentication_is_refused_before_the_broker_does_it_less_clearly(
    flags: dict[str, object], told: str
) -> None:
    assert told in refused(**{name.replace(".", "__"): value for name, value in flags.items()})


def test_one_copy_of_the_log_is_a_warning_and_three_are_none() -> None:
    def warnings(**flags: object) -> list[str]:
        return Settings.load(environ={}, flags={f"topics.{name}": value for name, value in flags.items()}).warnings()

    assert any("topics.replication is 1" in text for text in warnings())
    assert any("topics.min_isr is 1" in text for text in warnings(replication=3))
    assert warnings(replication=3, min_isr=2) == []


def test_an_option_that_the_guarantees_rest_on_is_refused_with_the_reason() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load(environ={"MAINSPRING_KAFKA__OPTIONS__ISOLATION_LEVEL": "read_uncommitted"})

    assert "isolation.level (what was aborted must not be read as if it had happened)" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("fifo", "FIFOStrategy"),
        ("priority", "PriorityStrategy"),
        ("aging", "AgingPriorityStrategy"),
        ("edf", "EarliestDeadlineFirstStrategy"),
        ("mainspring.processors.core.strategies:FIFOStrategy", "FIFOStrategy"),
    ],
)
def test_a_queue_gets_the_strategy_it_names(name: str, strategy: str) -> None:
    rules = Settings.load(
        environ={}, flags={"queues.mail.strategy": name, "queues.mail.tenant_weights.acme": 2}
    ).rules()

    assert type(rules.queues["mail"].strategy).__name__ == strategy
    assert rules.queues["mail"].tenant_weights == {"acme": 2.0}


@pytest.mark.parametrize("target", ["no.such.module:Class", "mainspring.processors.core.strategies:Absent"])
def test_a_strategy_that_cannot_be_imported_says_so(target: str) -> None:
    with pytest.raises(ValueError, match="cannot be imported"):
        Settings.load(environ={}, flags={"queues.mail.strategy": target}).rules()


def test_the_factories_hand_on_what_was_set() -> None:
    settings = Settings.load(
        environ={},
        flags={
            "kafka.bootstrap": "a:1,b:2",
            "topics.prefix": "x.",
            "topics.partitions": 4,
            "queues.mail.strategy": "fifo",
        },
    )

    topology = settings.topology()
    assert settings.connection().bootstrap == "a:1,b:2"
    assert (topology.prefix, topology.partitions, topology.queues) == ("x.", 4, ("default", "mail"))
    assert settings.rules().partitions == 4


def test_a_standby_needs_its_tables_on_disk() -> None:
    text = refused(scheduler__standby=True, scheduler__tables="memory")

    assert "scheduler.standby" in text
    assert "set scheduler.tables to rocksdb" in text
    assert Settings.load(environ={}, flags={"scheduler.standby": True}).scheduler.standby
