"""What no code of the package may do, whatever it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path.relative_to(ROOT).as_posix() for room in ("sfora_ray", "jobs") for path in (ROOT / room).rglob("*.py")
)
SHIPPED = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("sfora_ray", "jobs", "configs")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix in (".py", ".yaml", ".yml", ".sh", ".json", ".toml", "")
)
NEVER_IMPORTED = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
NEVER_CALLED = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.unsafe_load", "yaml.full_load"}
UNSAFE_LOADERS = {"Loader", "UnsafeLoader", "FullLoader", "CLoader"}
EVERY_INTERFACE = ".".join("0000")


def faults(text: str) -> list[str]:
    """Return every forbidden thing in a module, with its line."""
    tree = ast.parse(text)
    return [
        f"line {node.lineno}: {fault}"
        for node in ast.walk(tree)
        if isinstance(node, ast.expr | ast.stmt)
        for fault in _faults(node)
    ]


def _faults(node: ast.expr | ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names if name.name.split(".")[0] in NEVER_IMPORTED)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in NEVER_IMPORTED:
        yield str(node.module)
    elif isinstance(node, ast.Call):
        yield from _faults_of_call(ast.unparse(node.func), node)


def _faults_of_call(name: str, call: ast.Call) -> Iterator[str]:
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    if name in NEVER_CALLED:
        yield name
    if name == "torch.load" and given.get("weights_only") != "True":
        yield "torch.load without weights_only=True"
    if name in ("np.load", "numpy.load") and given.get("allow_pickle") != "False":
        yield "np.load without allow_pickle=False"
    elif given.get("allow_pickle") == "True":
        yield "allow_pickle=True"
    if given.get("shell", "False") != "False":
        yield "shell=True"
    loaders = {part.attr for part in ast.walk(call) if isinstance(part, ast.Attribute)}
    if name in ("yaml.load", "yaml.load_all") and (loaders & UNSAFE_LOADERS or len(call.args) + len(call.keywords) < 2):
        yield f"{name} with an unsafe loader"


@pytest.mark.parametrize("source", SOURCES)
def test_no_code_is_run_from_data(source: str) -> None:
    assert faults((ROOT / source).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "numpy.load(path, None)",
        "np.lib.format.read_array(stream, allow_pickle=True)",
        "yaml.load(text)",
        "yaml.load(text, yaml.Loader)",
        "yaml.load(text, Loader=yaml.UnsafeLoader)",
        "yaml.unsafe_load(text)",
        "eval(text)",
        "exec(text)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "subprocess.run(text, shell=asked)",
    ],
)
def test_the_scan_sees_each_of_them(line: str) -> None:
    assert len(faults(f"x = 1\nif x:\n    {line}\n")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "torch.load(path, weights_only=True)",
        "np.load(path, mmap_mode='r', allow_pickle=False)",
        "yaml.safe_load(text)",
        "yaml.load(text, SafeLoader)",
        "model.eval()",
        "re.compile(text)",
        "subprocess.run([text])",
    ],
)
def test_the_scan_lets_the_safe_ones_pass(line: str) -> None:
    assert faults(line) == []


@pytest.mark.parametrize("source", SHIPPED)
def test_nothing_listens_on_every_interface(source: str) -> None:
    """Containers do, inside their own network: what they publish is proved in the tests of infra."""
    assert EVERY_INTERFACE not in (ROOT / source).read_text(encoding="utf-8")
