"""Reading a cron expression: strictly, field by field, before croniter expands what is left.

croniter alone would not do: it takes hashed and random fields, a year, and reads `5-5` as every minute, `59/15`
differently from version to version, and knows `W` only in its newest. What it is given here it reads the same in all.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from mainspring.processors.core.timing.errors import CronError

__all__ = ["FIELDS", "NICKNAMES", "Field", "FieldKind", "split_expression"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldKind:
    """One of the fields: what it is called and which values it takes."""

    name: str
    low: int
    high: int
    size: int
    """How many different values there are."""
    names: tuple[str, ...] = ()
    """Names of its values from `low` on, three letters each."""

    @property
    def values(self) -> str:
        """What may stand there, for people."""
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.low}-{self.high}{names}"


_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

SECOND: Final = FieldKind(name="second", low=0, high=59, size=60)
MINUTE: Final = FieldKind(name="minute", low=0, high=59, size=60)
HOUR: Final = FieldKind(name="hour", low=0, high=23, size=24)
DAY: Final = FieldKind(name="day of month", low=1, high=31, size=31)
MONTH: Final = FieldKind(name="month", low=1, high=12, size=12, names=_MONTHS)
WEEKDAY: Final = FieldKind(name="day of week", low=0, high=7, size=7, names=_WEEKDAYS)
FIELDS: Final = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)

NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field, read: what croniter expands, and what this package works out itself."""

    kind: FieldKind
    text: str
    plain: str
    """Numbers, ranges and steps, for croniter; empty where there are none."""
    last: tuple[int, ...] = ()
    """Day of month: how many days before the last one (`L`, `L-3`). Day of week: whose last one in the month (`5L`)."""
    nearest: tuple[int, ...] = ()
    """Day of month: the workday nearest to it (`15W`); 0 is the last workday of the month (`LW`)."""
    nth: tuple[tuple[int, int], ...] = ()
    """Day of week: (weekday, which one in the month) (`5#3`)."""

    @property
    def is_starred(self) -> bool:
        """Begins with a star (or is `?`), also `*/2`: what the rules of days and of clock changes ask for."""
        return self.text[0] in "*?"


_SPACE = re.compile(r"[ \t]+")
_NUMBER = r"[0-9]{1,4}"
_VALUE = rf"(?:{_NUMBER}|[A-Za-z]+)"
_PLAIN = re.compile(rf"(?:(?P<star>\*)|(?P<low>{_VALUE})(?:-(?P<high>{_VALUE}))?)(?:/(?P<step>{_NUMBER}))?", re.ASCII)
_LAST_DAY = re.compile(rf"L(?:-(?P<before>{_NUMBER}))?", re.ASCII | re.IGNORECASE)
_WORKDAY = re.compile(rf"(?:(?P<day>{_NUMBER})|(?P<last>L))W", re.ASCII | re.IGNORECASE)
_LAST_WEEKDAY = re.compile(rf"(?:(?P<day>{_NUMBER}|[A-Za-z]{{3}})L|L(?P<also>{_NUMBER}))", re.ASCII | re.IGNORECASE)
_NTH_WEEKDAY = re.compile(rf"(?P<day>{_VALUE})#(?P<nth>{_NUMBER})", re.ASCII)
_SAMPLE = {
    True: "six fields, seconds first, such as '0 30 2 * * MON-FRI'",
    False: "five fields, such as '30 2 * * MON-FRI'",
}


def split_expression(expression: str, *, seconds: bool) -> tuple[Field, ...]:
    """The fields of an expression, checked: second, minute, hour, day of month, month, day of week.

    Without `seconds` the first is `0`. Raises CronError.
    """
    text = expression.strip(" \t")
    if text.startswith("@"):
        text = _unfold(text, seconds=seconds)
    texts = _SPACE.split(text) if text else []
    expected = 6 if seconds else 5
    if len(texts) != expected:
        six = "; six fields, seconds first, are read where `seconds` is set" if len(texts) == 6 and not seconds else ""  # noqa: PLR2004 - spelled out beside it
        raise CronError(f"must have {_SAMPLE[seconds]}, and has {len(texts)}{six}: {expression!r}")
    kinds = (SECOND, *FIELDS) if seconds else FIELDS
    fields = tuple(_field(kind, text) for kind, text in zip(kinds, texts, strict=True))
    return fields if seconds else (Field(kind=SECOND, text="0", plain="0"), *fields)


def _unfold(text: str, *, seconds: bool) -> str:
    five = NICKNAMES.get(text.lower())
    if five is None:
        hint = "; an interval says every so often" if text.lower().startswith("@every") else ""
        raise CronError(f"must be one of {', '.join(NICKNAMES)} or fields, not {text!r}{hint}")
    return f"0 {five}" if seconds else five


def _field(kind: FieldKind, text: str) -> Field:
    if text == "?" and kind in (DAY, WEEKDAY):
        return Field(kind=kind, text=text, plain="*")
    read = _READERS.get(kind.name)
    plain: list[str] = []
    last: list[int] = []
    nearest: list[int] = []
    nth: list[tuple[int, int]] = []
    for item in text.split(","):
        if not item:
            raise CronError(f"{kind.name}: an item of the list {text!r} is empty")
        special = read(item) if read else None
        if special is None:
            plain.extend(_plain(kind, item))
            continue
        last.extend(special.last)
        nearest.extend(special.nearest)
        nth.extend(special.nth)
    return Field(kind=kind, text=text, plain=",".join(plain), last=tuple(last), nearest=tuple(nearest), nth=tuple(nth))


def _plain(kind: FieldKind, item: str) -> Iterator[str]:
    """A number, a name, a range or steps, as every version of croniter reads it."""
    match = _PLAIN.fullmatch(item)
    if match is None:
        raise CronError(f"{kind.name}: cannot read {item!r}; write {kind.values}, a range a-b, a list a,b or steps */n")
    step = None if match["step"] is None else int(match["step"])
    if step is not None and not 0 < step < kind.size:
        raise CronError(
            f"{kind.name}: the step of {item!r} must be from 1 to {kind.size - 1}: "
            f"steps begin anew with each {_ROUND[kind.name]}"
        )
    if match["star"]:
        yield "*" if step is None else f"*/{step}"
        return
    low = _value(kind, match["low"], item)
    if match["high"] is None:
        # Weekdays end with Saturday here: 7 is Sunday once more.
        high = low if step is None else max(low, min(kind.high, kind.low + kind.size - 1))
    else:
        high = _value(kind, match["high"], item)
        if kind is WEEKDAY and high < low == kind.high:
            low = kind.low
    if low > high or high >= kind.low + kind.size:
        # Past the turn of the field croniter loses its place, and not every version takes 7 for Sunday.
        turned = range(low - kind.low, high - kind.low + (kind.size if low > high else 0) + 1, step or 1)
        yield from dict.fromkeys(str(each % kind.size + kind.low) for each in turned)
    elif low == high or (step is not None and high < low + step):
        yield str(low)
    else:
        yield f"{low}-{high}" + ("" if step is None else f"/{step}")


_ROUND: Final = {
    "second": "minute",
    "minute": "hour",
    "hour": "day",
    "day of month": "month",
    "month": "year",
    "day of week": "week",
}


def _value(kind: FieldKind, text: str, item: str) -> int:
    if text.isdigit():
        value = int(text)
    elif text.upper() in kind.names:
        value = kind.low + kind.names.index(text.upper())
    else:
        raise CronError(f"{kind.name}: cannot read {item!r}; write {kind.values}")
    if not kind.low <= value <= kind.high:
        raise CronError(f"{kind.name}: {text} is out of range; write {kind.values}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Special:
    last: tuple[int, ...] = ()
    nearest: tuple[int, ...] = ()
    nth: tuple[tuple[int, int], ...] = ()


def _special_day(item: str) -> _Special | None:
    if match := _LAST_DAY.fullmatch(item):
        before = int(match["before"] or 0)
        if before >= DAY.high:
            raise CronError(f"{DAY.name}: {item!r} is in no month; write L-1 to L-{DAY.high - 1}")
        return _Special(last=(before,))
    if match := _WORKDAY.fullmatch(item):
        return _Special(nearest=(0 if match["last"] else _value(DAY, match["day"], item),))
    if "w" in item.lower():
        raise CronError(f"{DAY.name}: {item!r} must be one day and W, such as 15W, or LW for the last workday")
    return None


def _special_weekday(item: str) -> _Special | None:
    if match := _NTH_WEEKDAY.fullmatch(item):
        nth = int(match["nth"])
        if not 1 <= nth <= 5:  # noqa: PLR2004 - no month has six of a weekday
            raise CronError(f"{WEEKDAY.name}: {item!r} must have 1 to 5 behind the #: FRI#3 is the third Friday")
        return _Special(nth=((_value(WEEKDAY, match["day"], item) % 7, nth),))
    if match := _LAST_WEEKDAY.fullmatch(item):
        return _Special(last=(_value(WEEKDAY, match["day"] or match["also"], item) % 7,))
    if item.upper() == "L":
        raise CronError(f"{WEEKDAY.name}: L needs a day: 5L is the last Friday of the month, and 6 every Saturday")
    return None


_READERS: Final[dict[str, Callable[[str], _Special | None]]] = {DAY.name: _special_day, WEEKDAY.name: _special_weekday}
