"""Text on its way into a database."""

__all__ = ["ID_CHARS", "clean", "clean_or_none"]

ID_CHARS = 255
"""Longest id of an accepted job; a refused one may be longer, and an index cannot hold any length."""


def clean(value: str) -> str:
    """The text without NUL, which PostgreSQL cannot store; both databases get the same."""
    return value.replace("\x00", "\ufffd") if "\x00" in value else value


def clean_or_none(value: str | None) -> str | None:
    """`clean`, and None as it is."""
    return None if value is None else clean(value)
