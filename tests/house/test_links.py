"""Links in the documentation lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
_HIDDEN = {".venv", ".git", ".mainspring", ".pytest_cache", "node_modules", "build", "dist"}
_CODE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#+\s+(.*?)\s*#*$", re.MULTILINE)


def pages() -> Iterator[Path]:
    """Every Markdown file of the project."""
    for path in sorted(ROOT.rglob("*.md")):
        if not _HIDDEN & set(path.relative_to(ROOT).parts):
            yield path


def links_of(text: str) -> list[str]:
    """The targets of a page's links, those in code left out."""
    return _LINK.findall(_SPAN.sub("`", _CODE.sub("", text))) if "](" in text else []


def anchors_of(text: str) -> set[str]:
    """The anchors that a page's headings have."""
    headings = _HEADING.findall(_CODE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no heading of one; other sites are not asked."""
    broken = []
    for link in links_of(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path) if path else page
        there = target.exists()
        if there and anchor and target.suffix == ".md":
            there = anchor in anchors_of(target.read_text(encoding="utf-8"))
        if not there:
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", list(pages()), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_heading_that_are_there(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# The `first` part\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#the-first-part) [c](#here) [d](https://example.com/none)\n"
        "[e](none.md) [f](other.md#none) `[g](none.md)`\n\n```\n[h](none.md)\n```\n\n## Here\n"
    )

    assert broken_links(page) == ["none.md", "other.md#none"]
