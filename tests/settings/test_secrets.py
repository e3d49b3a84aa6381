"""Secrets reach the client library and nothing else."""

import json

import pytest

from mainspring.settings import Settings, SettingsError
from mainspring.settings.factories import kafka_options

SECRET = "correct-horse-battery"
ENVIRON = {
    "MAINSPRING_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
    "MAINSPRING_KAFKA__SASL_MECHANISM": "PLAIN",
    "MAINSPRING_KAFKA__SASL_USERNAME": "ann",
    "MAINSPRING_KAFKA__SASL_PASSWORD": SECRET,
    "MAINSPRING_KAFKA__OPTIONS__SSL_KEY_PASSWORD": SECRET,
    "MAINSPRING_KAFKA__OPTIONS__SSL_KEY_PEM": SECRET,
    "MAINSPRING_VIEW__URL": f"postgresql://ann:{SECRET}@db.example.com/jobs",
    "MAINSPRING_REGISTRY__URL": f"https://ann:{SECRET}@registry.example.com",
    "MAINSPRING_REGISTRY__PASSWORD": SECRET,
}


@pytest.fixture
def settings() -> Settings:
    return Settings.load(environ=ENVIRON)


def test_no_way_of_printing_the_settings_shows_a_secret(settings: Settings) -> None:
    shown = [
        repr(settings),
        str(settings),
        settings.model_dump_json(),
        json.dumps({".".join(path): value for path, value in settings.values()}),
        f"{settings.view.url} {settings.kafka.options}",
    ]

    for text in shown:
        assert SECRET not in text


def test_a_url_keeps_all_but_its_password(settings: Settings) -> None:
    assert str(settings.view.url) == "postgresql://ann:**********@db.example.com/jobs"
    assert settings.view.url.get_secret_value() == ENVIRON["MAINSPRING_VIEW__URL"]


def test_the_client_library_gets_the_secrets_in_clear(settings: Settings) -> None:
    options = kafka_options(settings)

    assert options["sasl.password"] == SECRET
    assert options["ssl.key.password"] == SECRET
    assert options["ssl.key.pem"] == SECRET


def test_an_error_does_not_repeat_the_value_it_is_about() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load(environ={"MAINSPRING_HTTP__PORT": SECRET, "MAINSPRING_KAFKA__SASL_PASSWORDD": SECRET})

    assert SECRET not in str(caught.value)


def test_a_password_that_looks_like_a_number_stays_what_it_is() -> None:
    environ = ENVIRON | {"MAINSPRING_KAFKA__SASL_PASSWORD": "1e5", "MAINSPRING_KAFKA__OPTIONS__SSL_KEY_PASSWORD": "007"}

    options = kafka_options(Settings.load(environ=environ))

    assert (options["sasl.password"], options["ssl.key.password"]) == ("1e5", "007")
