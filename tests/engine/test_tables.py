"""Both kinds of tables keep one contract."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.processors.engine.errors import ConfigurationError
from mainspring.processors.engine.tables import MemoryTables, Tables
from mainspring.processors.engine.tables.rocks import CACHE_BYTES, RocksTables


@pytest.fixture(params=["memory", "rocks", "rocks, written at once"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    made: Tables
    if request.param == "memory":
        made = MemoryTables()
    else:
        made = RocksTables(tmp_path / "db", hold_rows=5_000 if request.param == "rocks" else 1)
    yield made
    made.close()


def test_a_new_table_is_empty_and_starts_at_the_beginning(tables: Tables) -> None:
    table = tables.open(0, "origin")

    assert (table.offset, table.as_of_ms, list(table.scan(b""))) == (0, 0, [])
    assert table.get(b"Jone") is None


def test_what_was_written_is_read_with_the_offset_it_reaches(tables: Tables) -> None:
    table = tables.open(0, "origin")

    table.write([(b"Jone", b"1"), (b"Jtwo", b"2"), (b"Jone", b"3")], 7, 1_000)

    assert (table.get(b"Jone"), table.get(b"Jtwo")) == (b"3", b"2")
    assert (table.offset, table.as_of_ms) == (7, 1_000)


def test_a_row_that_was_deleted_is_gone(tables: Tables) -> None:
    table = tables.open(0, "origin")
    table.write([(b"Jone", b"1"), (b"Jtwo", b"2")], 1, 1)
    assert list(table.scan(b"J")) == [(b"Jone", b"1"), (b"Jtwo", b"2")]

    table.write([(b"Jone", None), (b"Jnever", None)], 2, 2)

    assert table.get(b"Jone") is None
    assert list(table.scan(b"J")) == [(b"Jtwo", b"2")]


def test_a_scan_gives_the_rows_of_one_prefix_in_the_order_of_their_keys(tables: Tables) -> None:
    table = tables.open(1, "origin")
    table.write([(b"Jb", b"2"), (b"Sa", b"s"), (b"Ja", b"1"), (b"J\xff", b"3"), (b"!position", b"p")], 1, 1)

    assert list(table.scan(b"J")) == [(b"Ja", b"1"), (b"Jb", b"2"), (b"J\xff", b"3")]
    assert [key for key, _ in table.scan(b"")] == [b"!position", b"Ja", b"Jb", b"J\xff", b"Sa"]


def test_partitions_are_apart_and_wiping_one_leaves_the_other(tables: Tables) -> None:
    one, other = tables.open(0, "origin"), tables.open(1, "origin")
    one.write([(b"Jx", b"one")], 3, 1)
    other.write([(b"Jx", b"other")], 4, 1)

    one.wipe()

    assert (one.get(b"Jx"), one.offset, list(one.scan(b""))) == (None, 0, [])
    assert (other.get(b"Jx"), other.offset) == (b"other", 4)


def test_a_wiped_table_can_be_filled_again(tables: Tables) -> None:
    table = tables.open(0, "origin")
    table.write([(b"Jold", b"1")], 9, 1)
    table.wipe()

    table.write([(b"Jnew", b"2")], 1, 2)

    assert (list(table.scan(b"")), table.offset) == ([(b"Jnew", b"2")], 1)


rows = st.lists(st.tuples(st.binary(min_size=1, max_size=4), st.none() | st.binary(max_size=4)), max_size=20)


@settings(deadline=None, max_examples=50)
@given(batches=st.lists(rows, max_size=8), hold_rows=st.integers(min_value=1, max_value=30))
def test_rocks_equals_memory_after_any_writes(
    batches: list[list[tuple[bytes, bytes | None]]], hold_rows: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("rocks") / "db"
    memory = MemoryTables().open(0, "o")
    tables = RocksTables(path, hold_rows=hold_rows)
    rocks = tables.open(0, "o")

    for offset, batch in enumerate(batches, 1):
        memory.write(batch, offset, offset)
        rocks.write(batch, offset, offset)
        tables.sync(offset)

    assert list(rocks.scan(b"")) == list(memory.scan(b""))
    tables.close()
    again = RocksTables(path)
    reopened = again.open(0, "o")
    assert list(reopened.scan(b"")) == list(memory.scan(b""))
    assert reopened.offset == memory.offset
    again.close()


@pytest.fixture
def rocks(tmp_path: Path) -> Callable[[], RocksTables]:
    return lambda: RocksTables(tmp_path / "db")


def test_rows_of_another_changelog_are_forgotten(rocks: Callable[[], RocksTables]) -> None:
    tables = rocks()
    tables.open(0, "first").write([(b"Jx", b"1")], 5, 1)
    tables.close()

    tables = rocks()
    table = tables.open(0, "second")

    assert (table.offset, list(table.scan(b""))) == (0, [])
    tables.close()


def test_what_is_held_back_is_written_when_its_time_has_come(rocks: Callable[[], RocksTables]) -> None:
    tables = rocks()
    table = tables.open(0, "o")
    table.write([(b"Jx", b"1")], 5, 1)
    tables.sync(10_000)
    assert tables.open(0, "o").offset == 0

    tables = _reopened(tables, rocks)
    tables.open(0, "o").write([(b"Jx", b"1")], 5, 1)
    tables.sync(20_000)
    tables.sync(21_000)
    assert tables.open(0, "o").offset == 5
    tables.close()


def test_a_partition_that_leaves_is_written_down_and_found_again(rocks: Callable[[], RocksTables]) -> None:
    tables = rocks()
    tables.open(3, "o").write([(b"Jx", b"1")], 5, 77)

    tables.release(3)
    table = tables.open(3, "o")

    assert (table.get(b"Jx"), table.offset, table.as_of_ms) == (b"1", 5, 77)
    tables.close()


KILLED = """
import sys
from pathlib import Path
from mainspring.processors.engine.tables.rocks import RocksTables
table = RocksTables(Path(sys.argv[1]), hold_rows=100).open(0, "o")
offset = 0
while True:
    offset += 1
    table.write([(b"J%d" % offset, b"x" * 100), (b"Jlast", b"%d" % offset)], offset, offset)
    if offset == 5_000:
        print("busy", flush=True)
"""


def test_a_kill_in_the_middle_of_writes_leaves_rows_that_fit_their_offset(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "db")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"busy\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    tables = RocksTables(tmp_path / "db")
    table = tables.open(0, "o")

    assert table.offset >= 4_900
    assert table.get(b"Jlast") == b"%d" % table.offset
    assert sum(1 for _ in table.scan(b"J")) == table.offset + 1
    tables.close()


def test_a_database_that_is_broken_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "CURRENT").write_text("nonsense")

    tables = RocksTables(tmp_path / "db")

    assert tables.open(0, "o").offset == 0
    tables.close()


def test_a_database_that_another_process_has_open_is_left_alone(tmp_path: Path) -> None:
    tables = RocksTables(tmp_path / "db")
    tables.open(0, "o").write([(b"Jx", b"1")], 1, 1)

    with pytest.raises(ConfigurationError, match="in use by another process"):
        RocksTables(tmp_path / "db")

    tables.close()
    again = RocksTables(tmp_path / "db")
    assert again.open(0, "o").offset == 1
    again.close()


def test_tables_that_are_opened_again_have_the_cache_and_the_filters_of_new_ones(
    rocks: Callable[[], RocksTables],
) -> None:
    """Without them nothing is wrong and a look-up costs several times as much, beside a backlog that is deep."""
    tables = rocks()
    _fill_a_file(tables, b"first")
    fresh = _cache_and_filters(tables)

    tables = _reopened(tables, rocks)
    _fill_a_file(tables, b"second")
    again = _cache_and_filters(tables)
    tables.close()

    assert fresh == (CACHE_BYTES, 1.0)
    assert again == fresh


def _fill_a_file(tables: RocksTables, kind: bytes) -> None:
    tables.open(0, "o").write([(b"J%s%d" % (kind, number), b"x") for number in range(1_000)], 1, 1)
    tables.release(0)
    tables._db.flush()


def _cache_and_filters(tables: RocksTables) -> tuple[int | None, float]:
    """The bytes of the block cache, and how much of what is in files is in their filters."""
    told = tables._db.property_value("rocksdb.aggregated-table-properties")
    assert told is not None
    pairs = (each.strip().removeprefix("# ").partition("=") for each in told.split(";"))
    found = {name: value for name, _, value in pairs}
    share = int(found["entries for filter"]) / int(found["entries"])
    return tables._db.property_int_value("rocksdb.block-cache-capacity"), share


def _reopened(tables: RocksTables, rocks: Callable[[], RocksTables]) -> RocksTables:
    tables.close()
    return rocks()


index_writes = st.lists(
    st.tuples(st.sampled_from([b"#w%d" % number for number in range(8)]), st.booleans(), st.booleans()), max_size=40
)


@settings(deadline=None, max_examples=50)
@given(writes=index_writes, hold_rows=st.integers(min_value=1, max_value=6))
def test_index_rows_are_what_was_put_and_not_deleted_however_long_they_are_held_back(
    writes: list[tuple[bytes, bool, bool]], hold_rows: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("rocks") / "db"
    tables = RocksTables(path, hold_rows=hold_rows)
    table = tables.open(0, "o")
    model: dict[bytes, bytes] = {}
    for offset, (key, put, again) in enumerate(writes, 1):
        # An index row is not put a second time without a deletion between; the two may come in one write.
        rows: list[tuple[bytes, bytes | None]] = [(key, None)] if key in model and (again or not put) else []
        if put and (again or key not in model):
            rows.append((key, b"%d" % offset))
        table.write([(b"Jx", b"%d" % offset)], offset, offset, rows)
        for row_key, value in rows:
            if value is None:
                model.pop(row_key, None)
            else:
                model[row_key] = value
        assert table.get(key) == model.get(key)

    assert table.index.scan(b"#w", b"", 100) == sorted(model.items())
    tables.close()
    tables = RocksTables(path)
    assert tables.open(0, "o").index.scan(b"#w", b"", 100) == sorted(model.items())
    tables.close()


def test_an_index_row_that_came_and_went_while_it_was_held_back_is_never_written(tmp_path: Path) -> None:
    tables = RocksTables(tmp_path / "db")
    table = tables.open(0, "o")
    before = tables._db.latest_sequence_number()
    table.write([], 1, 1, [(b"#wone", b"1"), (b"#wtwo", b"2")])
    table.write([], 2, 2, [(b"#wone", None)])
    table.flush()
    # The row that stays and the one that tells how far the table is.
    assert tables._db.latest_sequence_number() - before == 2
    tables.close()


def test_a_scan_of_the_index_begins_behind_a_key_and_stays_under_its_prefix(tmp_path: Path) -> None:
    tables = RocksTables(tmp_path / "db")
    index, other = tables.open(0, "o").index, tables.open(1, "o").index
    index.write([(b"#l1a", b"1"), (b"#l1b", b"2"), (b"#l1c", b"3"), (b"#l2a", b"4"), (b"#k", b"5")])
    other.write([(b"#l1b", b"another partition")])

    assert index.scan(b"#l1", b"", 10) == [(b"#l1a", b"1"), (b"#l1b", b"2"), (b"#l1c", b"3")]
    assert index.scan(b"#l1", b"#l1a", 1) == [(b"#l1b", b"2")]
    assert index.scan(b"#l1", b"#l1c", 10) == []

    index.clear(b"#l1", b"#l1b")
    assert index.scan(b"#l", b"", 10) == [(b"#l1c", b"3"), (b"#l2a", b"4")]
    index.clear(b"#l")
    assert (index.scan(b"#", b"", 10), len(other.scan(b"#l", b"", 10))) == ([(b"#k", b"5")], 1)
    tables.close()
