"""The database of a view as its readers find it: absent, unfinished, of another version, behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from mainspring.processors.projector import ViewAbsentError, ViewMismatchError, ViewUrlError
from mainspring.processors.projector.view import View
from tests.support.memory_view import memory, project
from tests.support.scheduler_double import SchedulerDouble
from tests.support.view_rows import execute


def test_where_there_is_no_view_the_reader_says_so(view_url: str, tmp_path: Path) -> None:
    with pytest.raises(ViewAbsentError, match="start `mainspring projector`"):
        View(view_url)
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked into as one would be")
    with pytest.raises(ViewAbsentError, match="does not open"):
        View(f"sqlite:///{tmp_path / 'text.db'}")


@pytest.mark.parametrize(
    "url", ["mysql://host/db", "sqlite://", "sqlite:///:memory:", "nonsense", "oracle+x://scott:tiger@host/db"]
)
def test_a_url_that_can_hold_no_view_is_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(ViewUrlError) as raised:
        View(url)
    assert "tiger" not in str(raised.value)


def test_a_view_of_another_version_is_not_read(double: SchedulerDouble, view_url: str) -> None:
    double.submit("job")
    project(memory(double), double.codec, view_url)
    execute(view_url, "UPDATE meta SET value = '999' WHERE name = 'schema_version'")

    with pytest.raises(ViewMismatchError, match="schema version 999"):
        View(view_url)


def test_a_view_that_is_being_made_is_not_there_yet(double: SchedulerDouble, view_url: str) -> None:
    double.submit("job")
    project(memory(double), double.codec, view_url)
    execute(view_url, "DELETE FROM meta")

    with pytest.raises(ViewAbsentError, match="being made"):
        View(view_url)


def test_the_reader_cannot_write(double: SchedulerDouble, view_url: str) -> None:
    double.submit("job")
    project(memory(double), double.codec, view_url)

    with View(view_url) as view, view._engine.connect() as connection, pytest.raises(Exception, match=r"read-?only"):
        connection.execute(text("DELETE FROM jobs"))


def test_a_reader_that_waits_for_what_never_comes_gives_up_in_time(double: SchedulerDouble, view_url: str) -> None:
    double.submit("job")
    project(memory(double), double.codec, view_url)
    home = double.partition("job")

    with View(view_url) as view:
        assert view.wait_for(home, 0, timeout_s=0)
        assert not view.wait_for(home, 10_000, timeout_s=0.02)
        assert view.position()[home].next_offset == 1
