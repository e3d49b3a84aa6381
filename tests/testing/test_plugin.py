"""The plugin in a pytest of its own, and the example that users copy."""

import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "testing"
SETTINGS = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"


def _pytest(place: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-v", str(place)]
    ran = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


def test_the_example_that_users_copy_passes(tmp_path: Path) -> None:
    place = shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("__pycache__"))

    told = _pytest(place)

    assert " 7 passed" in told, told


def test_a_test_that_fails_shows_what_happened_to_its_jobs(tmp_path: Path) -> None:
    # given
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "test_it.py").write_text(
        "from mainspring.jobs import App\n"
        "app = App('x')\n"
        "@app.job\n"
        "async def greet():\n"
        "    print('so far')\n"
        "    raise KeyError('name')\n"
        "def test_it(mainspring):\n"
        "    mainspring.submit(greet.job())\n"
        "    mainspring.advance('1s')\n"
        "    assert mainspring.events() == ()\n"
    )

    # when
    told = _pytest(tmp_path)

    # then
    assert "1 failed" in told, told
    assert "Mainspring: what happened to the jobs" in told
    assert "JobFailed     attempt 1 FAILED: KeyError: 'name'" in told
    assert "| so far" in told


def test_the_app_of_a_code_base_is_named_once_and_a_marker_or_a_fixture_may_say_otherwise(tmp_path: Path) -> None:
    # given
    (tmp_path / "pytest.ini").write_text(f"{SETTINGS}pythonpath = .\nmainspring_app = shop:app\n")
    (tmp_path / "shop.py").write_text(
        "from mainspring.jobs import App\n"
        "app, other = App('app'), App('other')\n"
        "@app.job\n"
        "async def sell(): return 'sold'\n"
        "@other.job\n"
        "async def buy(): return 'bought'\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import pytest, shop\n"
        "def test_setting(mainspring):\n"
        "    assert mainspring.submit('sell').result() == 'sold'\n"
        "    assert mainspring.submit('buy').wait().name == 'CANCELLED'\n"
        "@pytest.mark.mainspring(shop.other, slots=3, seed=5)\n"
        "def test_marker(mainspring):\n"
        "    assert mainspring.submit('buy').result() == 'bought'\n"
        "    assert mainspring.workers[0].slots == 3\n"
        "class TestOther:\n"
        "    @pytest.fixture\n"
        "    def mainspring_app(self): return shop.app, shop.other\n"
        "    def test_fixture(self, mainspring):\n"
        "        assert [mainspring.submit(name).result() for name in ('sell', 'buy')] == ['sold', 'bought']\n"
    )

    # when
    told = _pytest(tmp_path)

    # then
    assert " 3 passed" in told, told


def test_the_plugin_costs_a_run_that_does_not_use_it_nothing() -> None:
    program = "import sys, mainspring.testing.plugin; print(*(m for m in sys.modules if m.startswith('mainspring.')))"

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert set(ran.stdout.split()) == {"mainspring.testing", "mainspring.testing.plugin"}


def test_the_kit_needs_no_pytest() -> None:
    program = "import sys, mainspring.testing as t; t.Mainspring().close(); print('pytest' in sys.modules)"

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "False"
