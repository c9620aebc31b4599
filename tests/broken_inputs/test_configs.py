"""Configurations and overrides that are wrong, or meant to do harm."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.broken_inputs.conftest import Refused, Values
from tests.tiny import tiny_values

LAUGHS = "\n".join(
    ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    + ["name: *a11"]
)

TEXTS: list[tuple[str, str, tuple[str, ...]]] = [
    ("not_yaml", "name: [1, 2", ("tiny.yaml: not readable as YAML",)),
    ("tabs", "data:\n\troot: x", ("tiny.yaml: not readable as YAML", "line 2")),
    ("empty", "", ("tiny.yaml: must hold keys and values", "got NoneType")),
    ("a_list", "[1, 2]", ("tiny.yaml: must hold keys and values", "got list")),
    ("repeated_key", "name: a\nname: b", ("key 'name' stands twice",)),
    ("unhashable_key", "? [a]\n: b", ("tiny.yaml: not readable as YAML",)),
    ("number_as_key", "1: a\nname: b", ("keys should be strings, got 1",)),
    ("python_object", "name: !!python/object/apply:os.system ['touch owned']", ("not readable as YAML", "python/")),
    ("python_name", "name: !!python/name:os.system", ("not readable as YAML", "python/")),
    ("laughs", LAUGHS, ("tiny.yaml: ", "aliases")),
    ("endless", "name: &a [*a]", ("tiny.yaml: ", "aliases")),
    ("deep", "[" * 5000, ("tiny.yaml: not readable as YAML",)),
    ("nul", 'name: "a\\0b"', ("tiny.yaml: not readable as YAML", "a NUL character in line 1")),
    ("nul_in_a_path", 'name: a\noutput: "a\\0b"', ("a NUL character in line 2",)),
    ("control_character", "name: a\x00b", ("tiny.yaml: not readable as YAML",)),
]


@pytest.mark.parametrize(("text", "words"), [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS])
def test_a_file_that_is_no_configuration(text: str, words: tuple[str, ...], tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "tiny.yaml").write_text(text)
    refused("pack", "run", "tiny.yaml", "--local", words=words)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00name", b"\x80"], ids=["utf16", "latin"])
def test_a_file_in_another_encoding(content: bytes, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "tiny.yaml").write_bytes(content)
    refused("pack", "run", "tiny.yaml", words=("tiny.yaml: no readable config file",))


def test_a_folder_for_a_file(tmp_path: Path, refused: Refused) -> None:
    refused("pack", "run", tmp_path, words=("no readable config file",))


VALUES: list[tuple[str, str, Any, tuple[str, ...]]] = [
    ("dots", "name", "../../home", ("name: ", "it names a folder")),
    ("absolute", "name", "/etc", ("name: ", "it names a folder")),
    ("long", "name", "a" * 300, ("name: ", "it names a folder")),
    ("newline", "name", "tiny\n", ("name: ", "it names a folder")),
    ("number", "name", 5, ("name: expected text, got 5",)),
    ("nan", "optimizer.lr", float("nan"), ("optimizer.lr: ",)),
    ("inf", "optimizer.lr", float("inf"), ("optimizer.lr: ",)),
    ("text_number", "training.epochs", "ten", ("training.epochs: expected int, got 'ten'",)),
    ("negative", "training.epochs", -1, ("training.epochs: ",)),
    ("half", "training.epochs", 1.5, ("training.epochs: expected int, got 1.5",)),
    ("absurd", "seeds", [10**400], ("seeds",)),
    ("seeds_twice", "seeds", [1, 1], ("must not repeat a seed",)),
    ("huge_seed", "seeds", [2**63], ("seeds[0]: ",)),
    ("no_seeds", "seeds", [], ("seeds: must name at least one seed",)),
    ("unknown", "optimizer.lrr", 1, ("optimizer.lrr: unknown key. Did you mean 'lr'",)),
    ("list_for_part", "optimizer", [1], ("optimizer: ",)),
    ("null_for_part", "data", None, ("data: ",)),
    ("fold", "folds", ["gpa:../../x"], ("folds[0]",)),
    ("huge_image", "input.image_size", 10**9, ("input.image_size: ",)),
    ("huge_width", "model.dim", 10**9, ("model.dim: ",)),
    ("huge_head", "loss.hidden", 10**9, ("loss.hidden: ",)),
    ("huge_network", "model.backbone.widths", [10**9, 4, 8, 8], ("model.backbone.widths[0]: ",)),
    ("keys_in_a_store", "output", "s3://KEY:geheim@bucket/x", ("output: ",)),
    ("no_bucket", "output", "s3://", ("output: ",)),
    ("unknown_store", "output", "gopher://x/y", ("output: ",)),
    ("policy", "input.unreadable", "ignore", ("input.unreadable: 'ignore' is not one of",)),
    ("no_tolerance", "input.max_unreadable", 0, ("input.max_unreadable: ",)),
    ("split_outside", "data.split", {"kind": "csv", "path": "../../etc/passwd"}, ("data.split.path: must be a rel",)),
    ("split_absolute", "data.split", {"kind": "csv", "path": "/etc/passwd"}, ("data.split.path: must be a relative",)),
    ("archive_outside", "data", {"name": "omniglot", "root": ".", "train": ["../x"]}, ("data.train: must be names",)),
]


def set_at(values: Values, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for key in parents:
        values = values[key]
    values[last] = value


@pytest.mark.parametrize(("path", "value", "words"), [case[1:] for case in VALUES], ids=[case[0] for case in VALUES])
def test_a_value_that_cannot_be(
    path: str, value: Any, words: tuple[str, ...], images: Path, tmp_path: Path, refused: Refused
) -> None:
    values = tiny_values(images, tmp_path)
    set_at(values, path, value)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(values))
    refused("pack", "run", "tiny.yaml", "--local", words=("tiny.yaml: 1 problem(s)", *words))


BEYOND: list[tuple[str, tuple[str, ...]]] = [
    ("sampler.batch_size=12000000000", ("sampler per_class: ",)),
    ("resources.cpus_per_worker=100000000", ("resources.cpus_per_worker: ",)),
    ("resources.workers_per_member=12", ("resources.workers_per_member: ",)),
    ("resources.gpus_per_worker=1e6", ("resources.gpus_per_worker: ",)),
    ("data.root=/dev/null", ("/dev/null: not a folder",)),
    ("data.root=tiny.yaml", ("tiny.yaml: not a folder",)),
]


@pytest.mark.parametrize(("override", "words"), BEYOND, ids=[override for override, _ in BEYOND])
def test_a_value_beyond_what_is_there(
    override: str, words: tuple[str, ...], images: Path, tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(tiny_values(images, tmp_path)))
    refused("pack", "run", "tiny.yaml", override, "--local", words=words)


OVERRIDES: list[tuple[str, tuple[str, ...]]] = [
    ("training.epochs", ("override 'training.epochs': must be path=value",)),
    ("=5", ("override '=5': must be path=value",)),
    ("name.x=1", ("override 'name.x=1': there is no 'x'",)),
    ("seeds.9=1", ("override 'seeds.9=1': there is no '9'",)),
    ("seeds.-1=1", ("override 'seeds.-1=1': there is no '-1'",)),
    ("seeds.²=1", ("override 'seeds.²=1': there is no '²'",)),
    ("optimizer.lr=[", ("override 'optimizer.lr=[': not readable as YAML",)),
    ("optimizer.lr=!!python/object/apply:os.getcwd []", ("not readable as YAML",)),
    ("optimizer.lr=.nan", ("optimizer.lr: ",)),
    ("__class__.x=1", ("__class__: unknown key",)),
    ("..=1", ("unknown key",)),
]


@pytest.mark.parametrize(("override", "words"), OVERRIDES, ids=[override for override, _ in OVERRIDES])
def test_an_override_that_cannot_be(
    override: str, words: tuple[str, ...], images: Path, tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(tiny_values(images, tmp_path)))
    refused("pack", "run", "tiny.yaml", override, "--local", words=words)
