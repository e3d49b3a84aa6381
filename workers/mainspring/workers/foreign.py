"""What the code of an app has raised, told by the places in that code: ours and the interpreter's own say nothing."""

import traceback
from pathlib import Path
from typing import Final

__all__ = ["told"]

_OURS: Final = str(Path(__file__).parent)
_WAYS: Final = ("<frozen importlib", traceback.__file__.removesuffix("traceback.py"))
"""Where the interpreter's import system and its library are."""


def told(error: BaseException) -> str:
    """The error with its traceback from the first place on that is neither ours nor the standard library's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = next((at for at, frame in enumerate(frames) if not _is_on_the_way(frame.filename)), len(frames))
    places = "".join(traceback.format_list(frames[own:]))
    return f"{places}{''.join(traceback.format_exception_only(error))}".rstrip()


def _is_on_the_way(filename: str) -> bool:
    return filename.startswith((_OURS, *_WAYS)) and "site-packages" not in filename.removeprefix(_OURS)
