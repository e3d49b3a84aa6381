"""Writes what docs/performance.md shows of the benchmarks: the plots, and the table of figures beside their goals.

    python -m benchmarks.page

From the reports in docs/performance, as `make plots` leaves them there. The same reports give the same page.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.plots import DIRECTORY, draw, reports_in

__all__ = ["with_table"]

PAGE = DIRECTORY.parent / "performance.md"
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"
_PLAIN_FROM = 100


def main() -> None:
    """Writes both, and says what."""
    for name, svg in draw(DIRECTORY).items():
        (DIRECTORY / name).write_bytes(svg)
        print(f"wrote {DIRECTORY / name}")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), DIRECTORY), encoding="utf-8")
    print(f"wrote {PAGE}")


def with_table(page: str, directory: Path) -> str:
    """The page with the table of these reports between its marks. Raises ValueError for a page without them."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN.strip()} … {END.strip()}, between which the table goes: put them in")
    lines = ["| run | figure | measured | goal | load |", "|---|---|--:|--:|--:|"]
    lines += [line for report in reports_in(directory) for line in _rows(report)]
    return head + BEGIN + "\n".join(lines) + "\n" + END + tail


def _rows(report: Mapping[str, Any]) -> Iterator[str]:
    size = f"{report['bench']}, {report['jobs']:,} jobs"
    for each in report["goals"]:
        bound = f"{'≥' if each['at_least'] else '≤'} {_number(each['goal'])} {each['unit']}"
        measured = "–" if each["value"] is None else f"{_number(each['value'])} {each['unit']}"
        missed = "" if each["met"] is not False else " ✗"
        yield f"| {size} | {each['name']} | {measured}{missed} | {bound} | {report['layout']['load_before']:g} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _PLAIN_FROM or value == int(value) else f"{value:,.1f}"


if __name__ == "__main__":
    main()
