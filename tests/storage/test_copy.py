import json
from pathlib import Path

import pytest

from sfora_ray.errors import InputError, StorageError
from sfora_ray.storage import ObjectStore, WorkingCopy
from tests.storage.server import BUCKET, S3Server


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def contents(folder: Path) -> dict[str, str]:
    """Return what a person would call the files of a folder: no ledger, no drafts."""
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def stored(store: ObjectStore) -> dict[str, str]:
    return {name: (store.get(name) or b"").decode() for name in store.listing()}


def settle(s3: S3Server, store: ObjectStore) -> None:
    """Give the store an object that is clearly younger than all others, as after some seconds."""
    key = f"{store.address.removeprefix(f's3://{BUCKET}/')}/.younger"
    s3.write(key, b"")
    s3.backend_object(key).last_modified = s3.backend_object(key).last_modified.replace(year=2100)


FILES = {"manifest.json": "{}", "members/m00/epochs.jsonl": "1\n2\n", "members/m00/checkpoint/epoch-1/loop.json": "l"}


def test_a_copy_of_the_copy_is_the_same(store: ObjectStore, tmp_path: Path) -> None:
    write(tmp_path / "one", FILES)

    assert WorkingCopy(tmp_path / "one", store).push() == len(FILES)
    assert stored(store) == FILES
    assert WorkingCopy(tmp_path / "two", store).pull() == len(FILES)
    assert contents(tmp_path / "two") == FILES


def test_only_what_changed_is_sent(store: ObjectStore, s3: S3Server, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    copy = WorkingCopy(tmp_path, store)
    copy.push()
    s3.requests.clear()

    assert copy.push() == 0
    assert s3.requests == []
    with (tmp_path / "members/m00/epochs.jsonl").open("a") as stream:
        stream.write("3\n")
    write(tmp_path, {"summary.json": "s"})
    assert copy.push() == 2
    assert [line.rpartition("/")[2] for line in s3.written()] == ["epochs.jsonl", "summary.json"]
    assert stored(store) == contents(tmp_path)


def test_drafts_locks_and_ledgers_stay_at_home(store: ObjectStore, tmp_path: Path) -> None:
    private = {".draft": "x", "members/.m00/a": "x", "run.lock": "x", "members/a.lock": "x", "run.lease": "x"}
    write(tmp_path, {**FILES, **private})

    copy = WorkingCopy(tmp_path, store)
    copy.push()
    copy.pull()

    assert stored(store) == FILES
    assert (tmp_path / ".draft").exists()
    assert (tmp_path / "run.lock").exists()


def test_no_record_is_seen_before_what_it_names(store: ObjectStore, s3: S3Server, tmp_path: Path) -> None:
    names = [
        "result.json",
        "epochs.jsonl",
        "checkpoint/epoch-00002/loop.json",
        "checkpoint/epoch-00002/state.safetensors",
        "checkpoint/best-00001.safetensors",
        "model.safetensors",
        "embeddings.test.npz",
    ]
    write(tmp_path, dict.fromkeys(names, "x"))
    copy = WorkingCopy(tmp_path, store)

    copy.push()
    sent = [line.split()[1].partition("/")[2] for line in s3.written()]

    assert sorted(sent) == sorted(names)
    assert sent[-1] == "result.json"
    assert sent[-2] == "checkpoint/epoch-00002/loop.json"
    s3.requests.clear()
    for name in names[:4]:
        (tmp_path / name).unlink()
    copy.push()
    deleted = [line.split()[1].partition("/")[2] for line in s3.written() if line.startswith("DELETE")]
    assert deleted[:2] == [names[0], names[2]]
    assert sorted(deleted) == sorted(names[:4])
    assert set(stored(store)) == set(names[4:])


def test_an_interrupted_push_is_finished_by_the_next(store: ObjectStore, s3: S3Server, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    copy = WorkingCopy(tmp_path, store)
    s3.faults.extend([(500, "")] * 5)

    with pytest.raises(StorageError):
        copy.push()
    assert copy.push() == len(FILES)
    assert stored(store) == FILES


def test_the_store_has_the_word_when_an_old_copy_is_taken_up(store: ObjectStore, tmp_path: Path) -> None:
    write(tmp_path / "one", FILES)
    WorkingCopy(tmp_path / "one", store).push()
    write(tmp_path / "old", {"manifest.json": "old", "members/m00/result.json": "failed", "a": "b"})

    WorkingCopy(tmp_path / "old", store).pull()

    assert contents(tmp_path / "old") == FILES


def test_what_is_unsent_survives_a_pull_in_the_middle(store: ObjectStore, tmp_path: Path) -> None:
    write(tmp_path / "one", {"changed": "1", "gone": "1", "theirs": "1"})
    one = WorkingCopy(tmp_path / "one", store)
    one.push()
    two = WorkingCopy(tmp_path / "two", store)
    two.pull()

    write(tmp_path / "two", {"changed": "2", "new": "2"})
    (tmp_path / "two/gone").unlink()
    write(tmp_path / "one", {"theirs": "22"})
    one.push()
    two.pull(keep_unsent=True)

    assert contents(tmp_path / "two") == {"changed": "2", "new": "2", "theirs": "22"}
    two.push()
    assert stored(store) == {"changed": "2", "new": "2", "theirs": "22"}


def test_patterns_bound_what_is_looked_at(store: ObjectStore, tmp_path: Path) -> None:
    files = {"manifest.json": "m", "members/m00/checkpoint/a/state": "c", "members/m00/epochs.jsonl": "e"}
    write(tmp_path / "one", files)
    WorkingCopy(tmp_path / "one", store).push()
    two = WorkingCopy(tmp_path / "two", store)

    two.pull(leave_out=["members/*/checkpoint/*"])
    assert set(contents(tmp_path / "two")) == {"manifest.json", "members/m00/epochs.jsonl"}
    assert two.push() == 0
    two.pull(only=["members/*/checkpoint/*"])
    assert contents(tmp_path / "two") == files
    (tmp_path / "two/manifest.json").unlink()
    assert two.push(only=["members/*"]) == 0
    assert "manifest.json" in store.listing()


def test_the_ledger_saves_fetching_what_is_here(store: ObjectStore, s3: S3Server, tmp_path: Path) -> None:
    write(tmp_path / "one", FILES)
    WorkingCopy(tmp_path / "one", store).push()
    settle(s3, store)
    WorkingCopy(tmp_path / "two", store).pull()
    s3.requests.clear()

    assert WorkingCopy(tmp_path / "two", store).pull() == 0
    assert len(s3.requests) == 1
    write(tmp_path / "two", {"manifest.json": "[]"})
    assert WorkingCopy(tmp_path / "two", store).pull() == 1
    assert contents(tmp_path / "two") == FILES


def test_a_change_of_the_same_size_within_the_second_is_seen(store: ObjectStore, tmp_path: Path) -> None:
    two = WorkingCopy(tmp_path, store)
    for text in "123":
        store.put("progress.json", text.encode())
        two.pull()
        assert contents(tmp_path) == {"progress.json": text}


@pytest.mark.parametrize("ledger", ["{", "[]", '{"address": "s3://other/place", "entries": {}}'])
def test_a_ledger_that_is_damaged_or_of_another_place_is_not_believed(
    store: ObjectStore, tmp_path: Path, ledger: str
) -> None:
    store.put("name", b"right")
    copy = WorkingCopy(tmp_path, store)
    copy.pull()
    whole = json.loads((tmp_path / ".ledger.json").read_text())
    assert whole["entries"].keys() == {"name"}
    write(tmp_path, {"name": "wrong", ".ledger.json": ledger})

    assert WorkingCopy(tmp_path, store).pull() == 1
    assert contents(tmp_path) == {"name": "right"}


def test_files_of_lines_with_several_writers_are_joined(store: ObjectStore, tmp_path: Path) -> None:
    name = "members/m00/attempts.jsonl"
    one = WorkingCopy(tmp_path / "one", store, shared=["*attempts.jsonl"])
    two = WorkingCopy(tmp_path / "two", store, shared=["*attempts.jsonl"])
    write(tmp_path / "one", {name: "started a\n"})
    one.push()
    two.pull()
    write(tmp_path / "two", {name: "started a\nended a\n"})
    write(tmp_path / "one", {name: "started a\nstarted b\n"})

    one.push()
    two.push()
    assert stored(store) == {name: "started a\nstarted b\nended a\n"}
    one.pull()
    two.pull(keep_unsent=True)
    assert contents(tmp_path / "one") == {name: "started a\nstarted b\nended a\n"}
    assert contents(tmp_path / "two") == {name: "started a\nended a\nstarted b\n"}
    assert two.push() + one.push() <= 1
    assert stored(store) == {name: "started a\nstarted b\nended a\n"}


@pytest.mark.parametrize(
    "key",
    ["../evil", "a/../../evil", "/etc/passwd", "a//b", "a/./b", "..", "a\\..\\b", "a\nb", "link/evil"],
)
def test_names_that_lead_out_are_refused(store: ObjectStore, s3: S3Server, tmp_path: Path, key: str) -> None:
    prefix = store.address.removeprefix(f"s3://{BUCKET}/")
    store.put("manifest.json", b"new")
    s3.insert(f"{prefix}/{key}", b"evil")
    home = tmp_path / "home"
    write(home, {"manifest.json": "old"})
    (home / "link").symlink_to(tmp_path)

    with pytest.raises(InputError, match="an object's name"):
        WorkingCopy(home, store).pull()

    assert contents(home) == {"manifest.json": "old"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_links_are_not_followed(store: ObjectStore, tmp_path: Path) -> None:
    write(tmp_path, {"secret": "x", "home/a": "1", "folder/b": "2"})
    (tmp_path / "home/link").symlink_to(tmp_path / "secret")
    (tmp_path / "home/folder").symlink_to(tmp_path / "folder")

    WorkingCopy(tmp_path / "home", store).push()

    assert stored(store) == {"a": "1"}


def test_a_copy_knows_what_it_is_a_copy_of(store: ObjectStore, tmp_path: Path) -> None:
    assert WorkingCopy.origin(tmp_path / "copy") == ""
    WorkingCopy(tmp_path / "copy", store).adopt()
    assert WorkingCopy.origin(tmp_path / "copy") == store.address
    assert WorkingCopy(tmp_path / "copy", store).push() == 0


def test_hidden_objects_are_left_alone(store: ObjectStore, s3: S3Server, tmp_path: Path) -> None:
    prefix = store.address.removeprefix(f"s3://{BUCKET}/")
    for key in (".ledger.json", "a/.git/config", "run.lock", "run.lease"):
        s3.write(f"{prefix}/{key}", b"evil")

    assert WorkingCopy(tmp_path, store).pull() == 0
    assert list(tmp_path.rglob("*")) == []


def test_an_object_that_is_a_folder_too_is_refused(store: ObjectStore, tmp_path: Path) -> None:
    store.put("a", b"1")
    store.put("a/b", b"2")

    with pytest.raises(InputError, match="both an object and a folder"):
        WorkingCopy(tmp_path, store).pull()
