"""Run folders that are damaged, of another version, or meant to do harm."""

import io
import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.pack.run_folder import RunFolder
from tests.broken_inputs.conftest import Refused
from tests.broken_inputs.hostile import Code, truncated

MEMBER = "members/m01-seed3"
EVERY = (("pack", "status"), ("pack", "resume", "--local"), ("fold",), ("report",), ("mlflow", "sync"))
SHOWS_MEMBERS = (("pack", "status"), ("pack", "resume", "--local"), ("fold",), ("mlflow", "sync"))
READS_MEMBERS = (("pack", "resume", "--local"), ("fold",))


@pytest.fixture
def run(whole: RunFolder, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole.path, tmp_path / whole.path.name))


def edited(path: Path, change: Callable[[Any], object]) -> None:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def manifest(change: Callable[[Any], object]) -> Callable[[Path], None]:
    return lambda run: edited(run / "manifest.json", change)


def deep(run: Path) -> None:
    (run / "manifest.json").write_text("[" * 100_000)


Case = tuple[str, Callable[[Path], object], tuple[str, ...]]

MANIFESTS: list[Case] = [
    ("absent", lambda run: (run / "manifest.json").unlink(), ("no run folder here",)),
    ("a_folder", lambda run: (run / "manifest.json").rename(run / "x").with_name("manifest.json").mkdir(), ("no run",)),
    ("truncated", lambda run: truncated(run / "manifest.json"), ("manifest.json: not a readable JSON",)),
    ("empty", lambda run: (run / "manifest.json").write_bytes(b""), ("manifest.json: not a readable JSON",)),
    ("binary", lambda run: (run / "manifest.json").write_bytes(b"\xff\x00"), ("manifest.json: not a readable JSON",)),
    ("deep", deep, ("manifest.json: not a readable JSON",)),
    ("a_list", lambda run: (run / "manifest.json").write_text("[]"), ("manifest.json",)),
    ("format_99", manifest(lambda values: values.update(format=99)), ("manifest.json: format", "got 99")),
    ("no_config", manifest(lambda values: values.pop("config")), ("manifest.json: config",)),
    ("config_text", manifest(lambda values: values.update(config="x")), ("manifest.json: config",)),
    ("digest", manifest(lambda values: values.update(digest="0" * 10)), ("manifest.json: the configuration has",)),
    ("changed", manifest(lambda values: values["config"].update(seeds=[5])), ("A changed config needs a run",)),
    ("name", manifest(lambda values: values.update(name="../../home")), ("manifest.json: ", "../../home")),
    ("config_name", manifest(lambda values: values["config"].update(name="../x")), ("manifest.json: config.name",)),
    ("unknown_key", manifest(lambda values: values.update(command="rm")), ("manifest.json: command",)),
]


@pytest.mark.parametrize(("spoil", "words"), [case[1:] for case in MANIFESTS], ids=[case[0] for case in MANIFESTS])
def test_a_manifest(spoil: Callable[[Path], object], words: tuple[str, ...], run: Path, refused: Refused) -> None:
    spoil(run)
    for command in EVERY:
        refused(*command, run.name, words=words)


RESULTS: list[Case] = [
    ("truncated", lambda run: truncated(run / MEMBER / "result.json"), ("m01-seed3/result.json",)),
    ("a_list", lambda run: (run / MEMBER / "result.json").write_text("[]"), ("m01-seed3/result.json",)),
    (
        "other_types",
        lambda run: edited(run / MEMBER / "result.json", lambda values: values.update(metrics="good")),
        ("m01-seed3/result.json: metrics",),
    ),
    (
        "unknown_status",
        lambda run: edited(run / MEMBER / "result.json", lambda values: values.update(status="great")),
        ("m01-seed3/result.json: status",),
    ),
    (
        "nan",
        lambda run: edited(run / MEMBER / "result.json", lambda v: v["metrics"].update(recall_at_1=float("nan"))),
        ("m01-seed3/result.json: metrics",),
    ),
]


@pytest.mark.parametrize(("spoil", "words"), [case[1:] for case in RESULTS], ids=[case[0] for case in RESULTS])
def test_a_members_result(spoil: Callable[[Path], object], words: tuple[str, ...], run: Path, refused: Refused) -> None:
    spoil(run)
    for command in SHOWS_MEMBERS:
        refused(*command, run.name, words=words)


def garbage_in_the_middle(run: Path) -> None:
    path = run / MEMBER / "epochs.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([first, "{garbage\n", *rest]))


def other_epochs(run: Path) -> None:
    (run / MEMBER / "epochs.jsonl").write_text('{"epoch": "first"}\n')


@pytest.mark.parametrize("spoil", [garbage_in_the_middle, other_epochs])
def test_recorded_epochs(spoil: Callable[[Path], None], run: Path, refused: Refused) -> None:
    spoil(run)
    refused("report", run.name, words=("m01-seed3/epochs.jsonl, line ",))


def table(run: Path) -> Path:
    return run / MEMBER / "embeddings.test.npz"


def changed_table(**arrays: Callable[[EmbeddingTable], Any]) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        whole = EmbeddingTable.load(table(run))
        values: dict[str, Any] = {"ids": whole.ids, "labels": whole.labels, "embeddings": whole.embeddings}
        values |= {name: make(whole) for name, make in arrays.items()}
        np.savez(table(run), **values)

    return change


def pickled_table(run: Path) -> None:
    whole = EmbeddingTable.load(table(run))
    with table(run).open("wb") as stream:
        np.savez(stream, ids=np.array([Code()], dtype=object), labels=whole.labels, embeddings=whole.embeddings)


def bare_pickle(run: Path) -> None:
    table(run).write_bytes(pickle.dumps(Code()))


def huge_array(run: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**20)})
    np.savez(table(run), ids=np.zeros(1), labels=np.zeros(1))
    with zipfile.ZipFile(table(run), "a") as archive:
        archive.writestr("embeddings.npy", header.getvalue())


def with_nan(whole: EmbeddingTable) -> Any:
    rows = whole.embeddings.copy()
    rows[3, 0] = np.nan
    return rows


PLACE = "embeddings.test.npz"
TABLES: list[tuple[str, Callable[[Path], object], tuple[str, ...], int]] = [
    ("absent", lambda run: table(run).unlink(), (PLACE, "not a readable embedding table"), 2),
    ("truncated", lambda run: truncated(table(run)), (PLACE, "not a readable embedding table"), 2),
    ("pickled_array", pickled_table, (PLACE, "not a readable embedding table"), 2),
    ("bare_pickle", bare_pickle, (PLACE, "not a readable embedding table"), 2),
    ("huge_array", huge_array, (PLACE, "not a readable embedding table"), 2),
    ("without_ids", lambda run: np.savez(table(run), labels=np.zeros(3)), (PLACE, "not a readable"), 2),
    ("other_rows", changed_table(embeddings=lambda whole: whole.embeddings[1:]), ("the same rows",), 2),
    ("flat", changed_table(embeddings=lambda whole: whole.embeddings[:, 0]), ("the same rows",), 2),
    ("text", changed_table(embeddings=lambda whole: whole.embeddings.astype(str)), (PLACE,), 2),
    ("width", changed_table(embeddings=lambda whole: whole.embeddings[:, 1:]), ("m01-seed3", "the width differs"), 1),
    ("other_ids", changed_table(ids=lambda whole: np.roll(whole.ids, 1)), ("m01-seed3", "images differ"), 1),
    ("other_labels", changed_table(labels=lambda whole: whole.labels + 1), ("m01-seed3", "labels differ"), 1),
    ("nan_row", changed_table(embeddings=with_nan), ("m01-seed3", "row 3", "is not finite"), 1),
]


@pytest.mark.parametrize(("spoil", "words", "code"), [case[1:] for case in TABLES], ids=[case[0] for case in TABLES])
def test_embeddings(
    spoil: Callable[[Path], object], words: tuple[str, ...], code: int, run: Path, refused: Refused
) -> None:
    spoil(run)
    for command in READS_MEMBERS:
        refused(*command, run.name, words=words, code=code)
    assert not (refused.place / "owned").exists()


@pytest.mark.parametrize(("name", "words"), [("gpu", "got 'gpu'"), ("a b", "fold: not a fold"), ("..", "'..'")])
def test_a_file_that_is_named_like_no_fold(name: str, words: str, run: Path, refused: Refused) -> None:
    shutil.copy(run / "folds" / "gpa.safetensors", run / "folds" / f"{name}.safetensors")
    refused("fold", run.name, words=(words,))


@pytest.mark.parametrize("name", ["../../escape", "gpa/../../x", "/etc/passwd", "gpa:64/..", "", "gpa:-1"])
def test_a_fold_by_a_hostile_name(name: str, run: Path, refused: Refused) -> None:
    refused("fold", run.name, "--fold", name, words=("fold: not a fold",))


SUMMARIES: list[Case] = [
    ("truncated", lambda run: truncated(run / "summary.json"), ("summary.json",)),
    ("a_number", lambda run: (run / "summary.json").write_text("5"), ("summary.json",)),
    (
        "other_types",
        lambda run: edited(run / "summary.json", lambda values: values.update(folds="many")),
        ("summary.json: folds",),
    ),
    (
        "format_99",
        lambda run: edited(run / "summary.json", lambda values: values.update(format=99)),
        ("summary.json: format",),
    ),
]


@pytest.mark.parametrize(("spoil", "words"), [case[1:] for case in SUMMARIES], ids=[case[0] for case in SUMMARIES])
def test_a_summary(spoil: Callable[[Path], object], words: tuple[str, ...], run: Path, refused: Refused) -> None:
    spoil(run)
    for command in (("pack", "status"), ("report",)):
        refused(*command, run.name, words=words)


COMMANDS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("mlflow", "sync", "{run}", "--uri", "./mlruns"), ("uri", "must be a server")),
    (("mlflow", "sync", "{run}", "--uri", "gopher://x"), ("uri", "must be a server")),
    (("mlflow", "sync", "{run}", "--uri", "http://me:geheim@host"), ("must not hold a password",)),
    (("mlflow", "reconcile", "{run}", "--uri", "./mlruns"), ("uri", "must be a server")),
    (("mlflow", "reconcile", "--uri", "sqlite://"), ("uri", "must name a database file")),
    (("pack", "extend", "{run}", "--seeds", "1,x"), ("seeds",)),
    (("pack", "extend", "{run}", "--seeds", "-1"), ("seeds",)),
    (("pack", "extend", "{run}", "--seeds", "99999999999999999999"), ("seeds",)),
    (("pack", "extend", "{run}", "--epochs", "1"), ("epochs",)),
    (("pack", "extend", "{run}"), ("--seeds",)),
    (("pack", "status", "s3://me:geheim@bucket/x"), ("",)),
    (("pack", "status", "gopher://bucket/x"), ("gopher",)),
    (("pack", "resume", "{run}/manifest.json"), ("no run folder here",)),
    (("pack", "status", "/dev/null"), ("no run folder here",)),
    (("pack", "status", "no\0where"), ("no run folder here",)),
]


@pytest.mark.parametrize(("command", "words"), COMMANDS, ids=[" ".join(command[1:]) for command, _ in COMMANDS])
def test_a_command(command: tuple[str, ...], words: tuple[str, ...], run: Path, refused: Refused) -> None:
    ended = refused(*(part.format(run=run.name) for part in command), words=words)
    assert "geheim" not in ended.err + ended.out
