"""Where values come from, which source wins, and what a wrong name gets."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.settings import Settings, SettingsError
from mainspring.settings.docs import env_example
from mainspring.settings.sources import env_name, known_paths, read_layers


def load(
    environ: dict[str, str] | None = None, flags: dict[str, object] | None = None, config: Path | None = None
) -> Settings:
    """Settings from nothing but what is given: an absent secrets directory keeps the machine's own out."""
    return Settings.load(
        environ={"MAINSPRING_SECRETS_DIR": "/nonexistent"} | (environ or {}), flags=flags, config=config
    )


def problems(environ: dict[str, str], flags: dict[str, object] | None = None, config: Path | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load(environ, flags, config)
    return str(caught.value)


def test_without_any_source_every_setting_has_its_default() -> None:
    settings = load()

    assert settings.kafka.bootstrap == "127.0.0.1:9092"
    assert settings.topics.prefix == "mainspring."
    assert settings.origin(("kafka", "bootstrap")) == "default"


def test_a_flag_beats_the_environment_which_beats_a_secret_file_which_beats_the_file_which_beats_the_default(
    tmp_path: Path,
) -> None:
    # given a setting in one more source each time
    file = tmp_path / "some.toml"
    file.write_text('[worker]\nslots = 2\n[kafka]\nbootstrap = "file:1"\n', encoding="utf-8")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "MAINSPRING_WORKER__SLOTS").write_text("3\n", encoding="utf-8")
    with_file = {"MAINSPRING_CONFIG": str(file)}
    with_secret = with_file | {"MAINSPRING_SECRETS_DIR": str(secrets)}
    with_env = with_secret | {"MAINSPRING_WORKER__SLOTS": "4"}

    # when it is read
    seen = [
        load(with_file),
        load(with_secret),
        load(with_env),
        load(with_env, flags={"worker.slots": 5}),
    ]

    # then each source wins over the former ones, and says so
    assert [settings.worker.slots for settings in seen] == [2, 3, 4, 5]
    assert [settings.origin(("worker", "slots")) for settings in seen] == [
        f"file {file}",
        f"file {secrets}/MAINSPRING_WORKER__SLOTS",
        "environment MAINSPRING_WORKER__SLOTS",
        "flag",
    ]
    assert seen[-1].kafka.bootstrap == "file:1"


def test_the_file_of_the_working_directory_is_read_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mainspring.toml").write_text("[worker]\nslots = 7\n", encoding="utf-8")
    other = tmp_path / "other.toml"
    other.write_text("[http]\nport = 1234\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert load().worker.slots == 7
    named = load(config=other)
    assert (named.worker.slots, named.http.port) == (10, 1234)


def test_a_flag_of_none_is_not_given() -> None:
    assert load(flags={"worker.slots": None}).origin(("worker", "slots")) == "default"


@pytest.mark.parametrize(
    ("variable", "right"),
    [
        ("MAINSPRING_KAFKA__BOOTSRAP", "MAINSPRING_KAFKA__BOOTSTRAP"),
        ("MAINSPRING_KAFKA_BOOTSTRAP", "MAINSPRING_KAFKA__BOOTSTRAP"),
        ("MAINSPRING_WORKR__SLOTS", "MAINSPRING_WORKER__SLOTS"),
        ("MAINSPRING_QUEUES__MAIL__STRATEGI", "MAINSPRING_QUEUES__<name>__STRATEGY"),
        ("MAINSPRING_TOPICS__PARTITION", "MAINSPRING_TOPICS__PARTITIONS"),
    ],
)
def test_an_unknown_variable_is_an_error_that_names_the_nearest_right_one(variable: str, right: str) -> None:
    text = problems({variable: "1"})

    assert variable in text
    assert f"did you mean {right}?" in text


def test_a_variable_that_is_like_none_points_to_the_list() -> None:
    assert "`mainspring config show` lists them all" in problems({"MAINSPRING_ZZZZZZZZZZZ": "1"})


def test_a_setting_below_a_plain_value_is_an_error() -> None:
    assert "MAINSPRING_WORKER__SLOTS__MAX" in problems({"MAINSPRING_WORKER__SLOTS__MAX": "1"})


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        ("[wroker]\nslots = 1\n", "wroker", "worker"),
        ("[worker]\nslot = 1\n", "worker.slot", "worker.slots"),
        ("[queues.mail]\nstrategi = 'fifo'\n", "queues.mail.strategi", "queues.mail.strategy"),
    ],
)
def test_a_typo_in_the_file_is_an_error_at_every_level(tmp_path: Path, text: str, wrong: str, right: str) -> None:
    file = tmp_path / "m.toml"
    file.write_text(text, encoding="utf-8")

    message = problems({}, config=file)

    assert f"- {wrong} (file {file}): there is no such setting" in message
    assert f"did you mean {right}?" in message


def test_a_file_that_is_named_but_absent_or_broken_is_an_error_and_not_the_defaults(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[worker\n", encoding="utf-8")

    assert "cannot be read" in problems({}, config=tmp_path / "absent.toml")
    assert "is not TOML" in problems({}, config=broken)


def test_all_that_is_wrong_is_told_at_once() -> None:
    text = problems(
        {
            "MAINSPRING_KAFFKA__BOOTSTRAP": "x",
            "MAINSPRING_HTTP__PORT": "many",
            "MAINSPRING_WORKER__LEASE_MS": "2000",
            "MAINSPRING_TOPICS__MIN_ISR": "2",
        },
        flags={"log.level": "loud"},
    )

    assert text.startswith("6 settings are wrong:")
    for path in ("MAINSPRING_KAFFKA", "http.port", "log.level", "worker.heartbeat_ms", "topics.min_isr"):
        assert path in text


def test_each_problem_says_where_the_value_was_set() -> None:
    text = problems({"MAINSPRING_HTTP__PORT": "70000"})

    assert "- http.port (environment MAINSPRING_HTTP__PORT): input should be less than or equal to 65535" in text


def test_lists_are_written_with_commas_in_the_environment() -> None:
    environ = {
        "MAINSPRING_QUEUES__MAIL__STRATEGY": "fifo",
        "MAINSPRING_QUEUES__REPORTS__STRATEGY": "edf",
        "MAINSPRING_WORKER__QUEUES": "mail, reports",
    }

    settings = load(environ)

    assert settings.worker.queues == ("mail", "reports")
    assert set(settings.queues) == {"default", "mail", "reports"}


def test_a_mapping_may_be_given_as_json() -> None:
    settings = load({"MAINSPRING_QUEUES": json.dumps({"mail": {"tenant_weights": {"acme": 5}}})})

    assert settings.queues["mail"].tenant_weights == {"acme": 5}
    assert settings.origin(("queues", "mail", "tenant_weights", "acme")) == "environment MAINSPRING_QUEUES"


def test_kafka_options_are_named_with_dots_and_keep_their_text() -> None:
    settings = load({"MAINSPRING_KAFKA__OPTIONS__SOCKET_TIMEOUT_MS": "007"})

    assert settings.kafka.options == {"socket.timeout.ms": "007"}


def test_the_constructor_reads_neither_environment_nor_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mainspring.toml").write_text("[worker]\nslots = 7\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAINSPRING_WORKER__SLOTS", "8")

    assert Settings().worker.slots == 10


@given(st.sampled_from(sorted(known_paths(Settings))))
def test_every_setting_is_reached_by_its_own_variable_name(path: tuple[str, ...]) -> None:
    concrete = tuple(part.replace("<name>", "mail") for part in path)

    layer, *_ = read_layers(Settings, flags={}, environ={env_name(concrete): "1"}, config=None)[1:]

    assert layer.problems == []
    assert list(layer.origins.values()) == [f"environment {env_name(concrete)}"]


def test_an_empty_variable_is_not_set_but_its_name_must_be_right() -> None:
    settings = load({"MAINSPRING_WORKER__SLOTS": "", "MAINSPRING_KAFKA__SASL_MECHANISM": ""})

    assert settings.origin(("worker", "slots")) == "default"
    assert "MAINSPRING_WORKER__SLOS" in problems({"MAINSPRING_WORKER__SLOS": ""})


def test_the_example_of_the_environment_names_real_settings_and_their_defaults() -> None:
    lines = [line[1:] for line in env_example().splitlines() if line.startswith("#MAINSPRING_")]
    environ = dict(line.split("=", 1) for line in lines)

    assert load(environ).model_dump() == load().model_dump()
    assert len(environ) == len(list(known_paths(Settings)))


def test_tables_are_on_disk_unless_memory_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert Settings().scheduler_config().state_dir == tmp_path / "mainspring"
    assert Settings(scheduler={"state_dir": tmp_path / "own"}).scheduler_config().state_dir == tmp_path / "own"
    assert Settings(scheduler={"tables": "memory"}).scheduler_config().state_dir is None
