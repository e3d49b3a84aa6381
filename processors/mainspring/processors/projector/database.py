"""Opening the database of a view: SQLite in WAL mode or PostgreSQL, one writer, any number of readers."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from mainspring.processors.projector.errors import ViewAbsentError, ViewBusyError, ViewUrlError
from mainspring.processors.projector.tables import meta

__all__ = ["open_reader", "open_writer", "parse_url", "single_writer"]

BUSY_TIMEOUT_MS = 10_000


def parse_url(url: str) -> URL:
    """The URL with its driver named; ViewUrlError when no view can live there. No message holds the password."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ViewUrlError(
            "the view's URL cannot be read: give sqlite:///file.db or postgresql://user@host/name"
        ) from error
    shown = parsed.render_as_string(hide_password=True)
    match parsed.get_backend_name():
        case "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise ViewUrlError(
                    f"{shown}: a view in memory could not be read by others; name a file: sqlite:///view.db"
                )
            return parsed
        case "postgresql" | "postgres":
            return parsed.set(drivername="postgresql+psycopg")
        case other:
            raise ViewUrlError(f"{shown}: a view lives in SQLite or PostgreSQL, not in {other}")


def open_writer(url: URL) -> Engine:
    """An engine for the one writer; a SQLite file and its folder are made when absent."""
    if url.get_backend_name() == "sqlite":
        Path(str(url.database)).expanduser().parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(url, poolclass=NullPool)
        _each_connection(
            engine,
            "PRAGMA journal_mode=WAL",
            # In WAL mode a power cut may take the last transactions, never half of one: their offsets go with them.
            "PRAGMA synchronous=NORMAL",
            f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
            "PRAGMA cache_size=-65536",
            # 64 MB: at the default of 4 MB every large batch would copy the log back into the file.
            "PRAGMA wal_autocheckpoint=16384",
            "PRAGMA temp_store=MEMORY",
        )
        return engine
    return create_engine(url, poolclass=NullPool)


def open_reader(url: URL) -> Engine:
    """An engine that cannot write. ViewAbsentError when no view is there."""
    if url.get_backend_name() == "sqlite":
        engine = _sqlite_reader(url)
    else:
        engine = create_engine(
            url, pool_pre_ping=True, connect_args={"options": "-c default_transaction_read_only=on"}, pool_size=5
        )
    try:
        with engine.connect() as connection:
            present = inspect(connection).has_table(meta.name)
    except DBAPIError as error:
        engine.dispose()
        raise ViewAbsentError(f"{_shown(url)}: the view's database does not open: {_first_line(error)}") from error
    if not present:
        engine.dispose()
        raise ViewAbsentError(f"{_shown(url)}: there is no view yet; start `mainspring projector` to make it")
    return engine


@contextmanager
def single_writer(engine: Engine) -> Iterator[Connection]:
    """A connection that no other projector has at the same time; ViewBusyError at once when one does.

    The lock is the operating system's (a file beside the SQLite file) or the server's (an advisory lock of the
    session), so that it ends with its holder however that dies.
    """
    url = engine.url
    if url.get_backend_name() == "sqlite":
        with _file_lock(Path(f"{url.database}.lock"), url), engine.connect() as connection:
            yield connection
        return
    with engine.connect() as connection:
        schema = str(connection.scalar(text("SELECT current_schema()")))
        key = int.from_bytes(hashlib.blake2b(f"mainspring-view/{schema}".encode(), digest_size=8).digest(), signed=True)
        taken = connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": key})
        connection.commit()
        if not taken:
            raise ViewBusyError(_busy(url))
        try:
            yield connection
        finally:
            # The server sees the end of a session some time after it: the next projector may be there by then.
            with suppress(SQLAlchemyError):
                connection.rollback()
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": key})
                connection.commit()


@contextmanager
def _file_lock(path: Path, url: URL) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ViewBusyError(_busy(url)) from error
        try:
            yield
        finally:
            # A child that another thread has just forked has the file open until it runs a program of its own.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _busy(url: URL) -> str:
    return (
        f"{_shown(url)}: another projector writes this view, and two would fold every event twice; "
        "stop the other one, or give this one a view of its own with MAINSPRING_VIEW__URL"
    )


def _sqlite_reader(url: URL) -> Engine:
    path = Path(str(url.database)).expanduser()
    if not path.exists():
        raise ViewAbsentError(f"{path}: there is no view yet; start `mainspring projector` to make it")
    uri = URL.create("sqlite", database=f"file:{quote(str(path.absolute()))}", query={"mode": "ro", "uri": "true"})
    engine = create_engine(uri, pool_size=5)
    _each_connection(engine, "PRAGMA query_only=ON", f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    return engine


def _each_connection(engine: Engine, *pragmas: str) -> None:
    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()


def _shown(url: URL) -> str:
    return url.render_as_string(hide_password=True)


def _first_line(error: Exception) -> str:
    return str(error.__cause__ or error).strip().splitlines()[0]
