"""Where a page ends and the next one begins, as text that a reader hands back."""

import base64
import binascii
import json

__all__ = ["cursor_of", "read_cursor"]

Key = str | int


def cursor_of(order: str, *keys: Key) -> str:
    """The cursor behind a row with these keys, in a list of this order."""
    return base64.urlsafe_b64encode(json.dumps([order, *keys]).encode()).decode("ascii")


def read_cursor(cursor: str, order: str, *kinds: type[Key]) -> list[Key]:
    """The keys that `cursor_of` was given. ValueError where it is no cursor of this order, with keys of these types."""
    try:
        of_order, *keys = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
        if of_order == order and [type(key) for key in keys] == [*kinds]:
            return [*keys]
    except (ValueError, binascii.Error, UnicodeError, TypeError):
        pass
    raise ValueError(f"{cursor!r} is no cursor of a list in order {order}: use the next_cursor of its last page")
