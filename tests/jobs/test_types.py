"""What a type checker says of the code of users: a job takes what its handler takes, without the context."""

from pathlib import Path
from typing import Any

import pytest
from mypy import api

from mainspring.jobs import App, ContextJobFunction, JobContext, JobFunction

SAMPLE = """
from typing import Any

from mainspring.jobs import App, JobContext

app = App("sample")


@app.job
async def plain(path: str, *, depth: int = 1) -> int:
    return depth


@app.job
async def with_context(context: JobContext, path: str, *, depth: int = 1) -> int:
    return context.attempt


@app.job(queue="slow")
def with_terms(context: JobContext, path: str) -> int:
    return context.attempt


@app.job
def anything(value: Any) -> None: ...


def right(context: JobContext) -> None:
    plain.job("/srv", depth=2)
    with_context.job("/srv", depth=2)
    with_terms.job(path="/srv")
    anything.job(5)
    taken: int = with_terms(context, "/srv")
"""
WRONG = {
    "plain.job(1)": "arg-type",
    "with_context.job()": "call-arg",
    "with_context.job(1)": "arg-type",
    "with_context.job('/srv', dept=2)": "call-arg",
    "with_terms.job('/srv', 2)": "call-arg",
    "with_terms('/srv')": "call-arg",
}


def found(path: Path, text: str) -> list[str]:
    """What mypy says of a module, strictly."""
    path.write_text(text, encoding="utf-8")
    said, trouble, _ = api.run(
        [
            "--strict",
            "--no-error-summary",
            "--hide-error-context",
            "--config-file=",
            f"--cache-dir={path.parent}",
            str(path),
        ]
    )
    assert not trouble
    return [line for line in said.splitlines() if path.name in line]


def test_jobs_are_made_of_what_their_handlers_take_by_the_type_checker(tmp_path: Path) -> None:
    wrong = [f"def wrong_{at}() -> None:\n    {call}\n" for at, call in enumerate(WRONG)]

    said = found(tmp_path / "sample.py", "\n\n".join([SAMPLE, *wrong]))

    lines = "\n\n".join([SAMPLE, *wrong]).splitlines()
    assert {lines[int(line.split(":")[1]) - 1].strip() for line in said} == set(WRONG), said
    for call, code in WRONG.items():
        at = next(number for number, line in enumerate(lines, 1) if line.strip() == call)
        assert any(f":{at}:" in line and f"[{code}]" in line for line in said), (call, said)


@pytest.mark.parametrize("queue", [None, "slow"])
def test_a_handler_with_a_context_makes_jobs_without_it_and_is_called_with_it(queue: str | None) -> None:
    app = App("typed")

    @app.job(queue=queue)
    def plain(path: str) -> str:
        return path

    @app.job(queue=queue)
    def with_context(context: JobContext, path: str) -> str:
        return f"{path} {context}"

    given: Any = "the context"
    assert repr(app) == "App('typed', 2 handlers)"
    assert (type(plain), type(with_context)) == (JobFunction, ContextJobFunction)
    assert with_context.job("/srv").arguments == plain.job("/srv").arguments == {"path": "/srv"}
    assert with_context(given, "/srv") == "/srv the context"
