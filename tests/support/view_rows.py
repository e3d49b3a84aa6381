"""The rows of a view, as SQL sees them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import create_engine, select, text

from mainspring.processors.projector.database import parse_url
from mainspring.processors.projector.tables import metadata

__all__ = ["dump", "execute"]


def execute(url: str, statement: str) -> None:
    """Changes rows of a view behind its back; fails when there is none to change."""
    engine = create_engine(parse_url(url))
    with engine.begin() as connection:
        assert connection.execute(text(statement)).rowcount > 0
    engine.dispose()


def dump(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of a view, in the order of its primary key."""
    engine = create_engine(parse_url(url))
    with engine.connect() as connection:
        rows = {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
            for table in metadata.sorted_tables
        }
    engine.dispose()
    return rows
