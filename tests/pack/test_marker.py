import threading
from dataclasses import replace
from pathlib import Path

import pytest

from sfora_ray.errors import RunFolderError
from sfora_ray.pack.marker import marked, reply


@pytest.mark.parametrize("inner", [".", "absent", "absent/as/well"])
def test_a_mark_leaves_nothing_behind(inner: str, tmp_path: Path) -> None:
    folder = tmp_path / inner
    with marked(folder) as marker:
        assert marker.place.is_dir()
        assert marker.place.parent == folder
    assert list(tmp_path.iterdir()) == []


def test_what_others_write_meanwhile_stays(tmp_path: Path) -> None:
    with marked(tmp_path / "runs"):
        (tmp_path / "runs" / "pack").mkdir()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["pack"]


def test_a_folder_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RunFolderError, match=r"file/runs: run folders cannot be written.*another `output`"),
        marked(tmp_path / "file" / "runs"),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_reply_arrives(tmp_path: Path) -> None:
    with marked(tmp_path, patience_seconds=0.3) as marker:
        assert not marker.replied("far")
        assert reply(marker, "far") == ""
        assert marker.replied("far")
        assert not marker.replied("farther")


def test_another_folder_of_the_same_path_is_found_out_and_not_touched(tmp_path: Path) -> None:
    """The far machine's folder is played by another one: its marker is not there."""
    far = tmp_path / "far"
    far.mkdir()
    with marked(tmp_path / "near", patience_seconds=0.3) as marker:
        seen_from_there = replace(marker, place=far / marker.place.name)
        assert "a folder of its own" in reply(seen_from_there, "far")
        assert not marker.replied("far")
    assert list(far.iterdir()) == []


def test_a_file_that_appears_a_moment_later_is_waited_for(tmp_path: Path) -> None:
    with marked(tmp_path) as marker:
        call = marker.place / "call"
        late = call.rename(marker.place / "late")
        timer = threading.Timer(0.4, late.rename, (call,))
        timer.start()
        assert reply(marker, "far") == ""
        timer.join()


def test_another_text_in_the_marker_is_found_out(tmp_path: Path) -> None:
    with marked(tmp_path) as marker:
        assert "something else" in reply(replace(marker, token="other"), "far")


def test_a_place_that_can_be_read_and_not_written_is_told(tmp_path: Path) -> None:
    with marked(tmp_path) as marker:
        assert "cannot write there" in reply(marker, "call/below-a-file")
