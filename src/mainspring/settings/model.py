"""The one class of settings, and how it is loaded."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PrivateAttr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from mainspring.settings import factories
from mainspring.settings.checks import check_all, warnings
from mainspring.settings.display import flatten
from mainspring.settings.errors import Problem, SettingsError
from mainspring.settings.sections import (
    HistorySection,
    HttpSection,
    KafkaSection,
    LogSection,
    QueueSection,
    RegistrySection,
    SchedulerSection,
    TopicsSection,
    ViewSection,
    WorkerSection,
)
from mainspring.settings.sources import Layer, default_environ, merge, read_layers
from mainspring.settings.validation import problems_of, without

if TYPE_CHECKING:
    from mainspring.processors.core.rules import Rules
    from mainspring.processors.projector import ProjectorConfig
    from mainspring.processors.scheduler import SchedulerConfig
    from mainspring.schemas import Codec
    from mainspring.topics import Connection, Topology
    from mainspring.workers import WorkerConfig

__all__ = ["Settings"]


class Settings(BaseSettings):
    """Everything that can be set, checked as a whole.

    `Settings.load()` reads flags, environment, secret files and `mainspring.toml`, the former winning over the latter,
    and raises `SettingsError` with all that is wrong. `Settings(kafka={...})` takes what it is given and nothing else.
    """

    model_config = SettingsConfigDict(
        env_prefix="MAINSPRING_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        validate_default=True,
        use_attribute_docstrings=True,
    )

    kafka: KafkaSection = Field(default_factory=KafkaSection)
    topics: TopicsSection = Field(default_factory=TopicsSection)
    queues: dict[str, QueueSection] = Field(default_factory=lambda: {"default": QueueSection()})
    """Queues by name. Jobs of a queue that is not declared are refused; `default` is always there."""
    scheduler: SchedulerSection = Field(default_factory=SchedulerSection)
    worker: WorkerSection = Field(default_factory=WorkerSection)
    view: ViewSection = Field(default_factory=ViewSection)
    registry: RegistrySection = Field(default_factory=RegistrySection)
    http: HttpSection = Field(default_factory=HttpSection)
    log: LogSection = Field(default_factory=LogSection)
    history: HistorySection = Field(default_factory=HistorySection)

    @field_validator("queues", mode="after")
    @classmethod
    def _with_default(cls, queues: dict[str, QueueSection]) -> dict[str, QueueSection]:
        return queues if "default" in queues else {"default": QueueSection()} | queues

    _origins: dict[tuple[str, ...], str] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what the caller gives: `load` reads the other sources itself, to know the origin of each value."""
        return (init_settings,)

    @classmethod
    def load(
        cls,
        *,
        flags: Mapping[str, object] | None = None,
        config: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """Read and check all sources. `flags` are dotted names (`kafka.bootstrap`) of which None means not given."""
        layers = read_layers(
            cls, flags=flags or {}, environ=default_environ() if environ is None else environ, config=config
        )
        merged = merge(layers)
        settings, problems = cls._validate(merged)
        if problems or settings is None:
            raise SettingsError(problems)
        settings._origins = merged.origins  # noqa: SLF001 - its own class
        return settings

    def origin(self, path: tuple[str, ...]) -> str:
        """Where the value of a setting comes from: `flag`, `environment NAME`, `file PATH` or `default`."""
        return self._origins.get(path, "default")

    def values(self) -> Iterator[tuple[tuple[str, ...], object]]:
        """Every setting with its value in plain JSON types; secrets are hidden, empty mappings are left out."""
        return flatten(self)

    def warnings(self) -> list[str]:
        """What works but loses a promise, a sentence each."""
        return warnings(self)

    def connection(self) -> "Connection":
        """How to reach Kafka; raises on an option that the guarantees rest on."""
        return factories.connection(self)

    def topology(self) -> "Topology":
        """The topics of this installation."""
        return factories.topology(self)

    def codec(self) -> "Codec":
        """The codec, with ids from the registry if one is set and from the lock file else."""
        return factories.codec(self)

    def rules(self) -> "Rules":
        """The rules that the scheduler decides by."""
        return factories.rules(self)

    def scheduler_config(self) -> "SchedulerConfig":
        """What one scheduler process needs."""
        return factories.scheduler_config(self)

    def worker_config(self) -> "WorkerConfig":
        """What one worker process needs."""
        return factories.worker_config(self)

    def projector_config(self) -> "ProjectorConfig":
        """What one projector process needs."""
        return factories.projector_config(self)

    @classmethod
    def _validate(cls, merged: Layer) -> tuple[Self | None, list[Problem]]:
        problems = list(merged.problems)
        values: dict[str, Any] = merged.values
        settings: Self | None = None
        try:
            settings = cls(**values)
        except ValidationError as error:
            found = problems_of(error, cls, merged.origins)
            problems += found
            # The rules that span settings are still checked on what is right, so that all errors come at once.
            try:
                settings = cls(**without(values, error))
            except ValidationError:
                return None, problems
        wrong = {problem.path for problem in problems}
        for check, message in check_all(settings):
            if not any(path == bad or bad.startswith(f"{path}.") for path in check.paths for bad in wrong):
                origin = merged.origins.get(tuple(check.paths[0].split(".")), "")
                problems.append(Problem(path=check.paths[0], message=message, origin=origin))
        return settings, problems
