"""Floors, doors, lazy imports, sizes and the map."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sfora_ray"
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py"))
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
SOURCES = [*MODULES, *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "jobs").glob("*.py"))]
HEAVY = ("ray", "mlflow", "matplotlib", "torch", "faiss", "pytorch_metric_learning", "yaml")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def loaded_by(statement: str) -> set[str]:
    """Return the heavy packages in a fresh interpreter after ``statement``."""
    code = f"{statement}\nimport sys\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_floors_and_doors() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "0 broken" in done.stdout


def test_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import sfora_ray") == set()


def test_training_and_local_packs_load_neither_ray_nor_mlflow_nor_matplotlib() -> None:
    assert loaded_by("import sfora_ray.pack.local").isdisjoint({"ray", "mlflow", "matplotlib"})


@pytest.mark.parametrize("module", SOURCES)
def test_every_module_says_what_it_is_and_has_no_long_function(module: str) -> None:
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    long = [f"{one.name}: {lines}" for one in functions(tree) if (lines := net_lines(one)) > 60]
    assert long == []


@pytest.mark.parametrize("module", SOURCES)
def test_no_loose_ends(module: str) -> None:
    text = (ROOT / module).read_text(encoding="utf-8")
    assert not any(word in text for word in ("TODO", "FIXME", "XXX", "**kwargs: Any"))


def functions(tree: ast.Module) -> Iterator[Function]:
    yield from (node for node in ast.walk(tree) if isinstance(node, Function))


def net_lines(function: Function) -> int:
    """Return a function's lines without its docstring and decorators."""
    docstring = function.body[0] if ast.get_docstring(function, clean=False) is not None else None
    hidden = 0 if docstring is None else (docstring.end_lineno or 0) - docstring.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - hidden


@pytest.mark.parametrize("room", ROOMS)
def test_the_map_shows_every_room(room: str) -> None:
    assert f"sfora_ray/{room}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_top_level_is_the_agreed_one() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    tops = {name.split("/")[0] for name in listed.stdout.splitlines() if "/" in name}
    assert {top for top in tops if not top.startswith(".")} == {"configs", "infra", "jobs", "sfora_ray", "tests"}
