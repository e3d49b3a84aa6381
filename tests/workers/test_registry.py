"""Where a worker's handlers come from."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from mainspring.jobs import App, DuplicateJobNameError, JobDefinitionError
from mainspring.jobs.errors import StartHookError
from mainspring.workers import Registry, hooks
from mainspring.workers.registry import load_object
from tests.support import worker_jobs


def test_apps_and_single_handlers_add_up() -> None:
    other = App("other")

    @other.job
    def extra() -> None: ...

    registry = Registry(worker_jobs.app, extra)
    assert registry.get("extra") is extra.handler
    assert registry.get("a_echo") is not None
    assert registry.get("nobody") is None
    assert registry.apps == (worker_jobs.app, other)
    assert len(registry) == len(worker_jobs.app.handlers) + 1


def test_the_same_app_twice_is_once() -> None:
    assert len(Registry(worker_jobs.app, worker_jobs.app).apps) == 1


def test_one_name_from_two_apps_is_refused() -> None:
    one, two = App("one"), App("two")

    @one.job(name="same")
    def first() -> None: ...

    @two.job(name="same")
    def second() -> None: ...

    with pytest.raises(DuplicateJobNameError, match="'same'"):
        Registry(one, two)


def test_an_app_is_found_by_module_and_attribute() -> None:
    assert Registry.load("tests.support.worker_jobs:app").get("a_echo") is not None


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("no_such_module:app", "no module 'no_such_module'"),
        ("tests.support.worker_jobs:nothing", "has no 'nothing'"),
        ("tests.support.worker_jobs", "write module:attribute"),
        (":app", "write module:attribute"),
        ("tests.support.worker_jobs:gate", "not an App"),
    ],
)
def test_a_reference_that_leads_nowhere_says_which_half_is_wrong(reference: str, words: str) -> None:
    with pytest.raises(JobDefinitionError, match=words):
        Registry.load(reference)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        pytest.param(
            "import a_module_that_is_not_there", "No module named 'a_module_that_is_not_there'", id="an import"
        ),
        pytest.param(
            "def f():\n    raise KeyError('x')\nf()", "in f\n    raise KeyError('x')\nKeyError: 'x'", id="raises"
        ),
        pytest.param("import sys\nsys.exit(3)", "SystemExit: 3", id="exits"),
        pytest.param("def (:", "SyntaxError: invalid syntax", id="no Python"),
    ],
)
def test_a_module_that_cannot_be_imported_shows_its_own_error_and_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "broken_module_of_a_user.py"
    module.write_text(f"{code}\n", encoding="utf-8")

    with pytest.raises(JobDefinitionError) as caught:
        load_object("broken_module_of_a_user:app")

    head, first, *_ = str(caught.value).splitlines()
    assert head == "module 'broken_module_of_a_user' cannot be imported:"
    assert first.startswith(f'  File "{module}", line ')
    assert says in str(caught.value)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_start_hook_that_raises_is_named_with_the_place_in_it(*, is_async: bool) -> None:
    # given
    app = App("shop")

    def connect() -> None:
        raise ConnectionError("no database")

    async def connect_later() -> None:
        connect()

    app.on_start(connect_later if is_async else connect)
    loop = asyncio.new_event_loop()

    # when
    with pytest.raises(StartHookError) as caught:
        hooks.start([app], hooks.wait_in(loop))
    loop.close()

    # then
    head, first, *_, last = str(caught.value).splitlines()
    name = "connect_later" if is_async else "connect"
    assert head == f"start hook {name} of app 'shop' raised, so the worker does not start:"
    assert first.startswith(f'  File "{__file__}", line ')
    assert last == "ConnectionError: no database"


def test_neither_the_registry_nor_a_process_child_imports_kafka() -> None:
    code = (
        "import sys, mainspring.workers, mainspring.workers.executors.child\n"
        "heavy = {'confluent_kafka', 'fastavro', 'sqlalchemy', 'rocksdict'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
