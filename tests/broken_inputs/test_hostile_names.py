"""Class folders may be called anything that a file system allows; nobody who shows a name may take it for markup."""

import re
from html import escape as html_escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.finish import write_pack_report
from sfora_ray.workflows.refold import refold
from tests.cli.conftest import Call
from tests.tiny import tiny_config, write_images
from tests.tiny_runs import PANDAS_OF_MLFLOW, train_here

NAMES = (
    "<script>alert(1)",
    '"><img src=x onerror=alert(2)>',
    "'; DROP TABLE runs; --",
    "two\nlines\tand a tab",
    "rosé 🌹 花 \u202eesrever",
    "line\u2028separator",
    "{{7*7}} ${HOME} %s %(x)s",
    "[link](javascript:alert(3)) | `code` | **bold**",
    "..hidden",
    "-rf",
    "~",
    " leading and trailing ",
)


class Tags(HTMLParser):
    """Collects the tags and the attributes that run code."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.handlers += [name for name, value in attrs if name in ("href", "src") and "javascript:" in (value or "")]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished pack whose classes have these names; a pattern in all of them, so that some answers are wrong."""
    place = tmp_path_factory.mktemp("hostile")
    photos = write_images(place / "photos")
    for folder, name in zip(sorted(photos.iterdir()), NAMES, strict=True):
        folder.rename(photos / name)
    run = train_here(tiny_config(photos, place, "training.epochs=2"))
    refold(run, (), say=lambda _: None)
    return run


def test_every_class_is_there(hostile: RunFolder) -> None:
    spec = hostile.specs()[0]
    ids = [str(one) for split in ("train", "test") for one in hostile.embeddings(spec, split).ids]
    # A name that starts with a dot is hidden and passed over.
    assert {one.rpartition("/")[0] for one in ids} == {*NAMES} - {"..hidden"}
    assert hostile.results()[spec.id].status == "finished"


def test_the_page_runs_nothing(hostile: RunFolder) -> None:
    html = write_pack_report(hostile).html.read_text(encoding="utf-8")
    assert any(html_escape(name) in html for name in NAMES[:2])
    page = Tags()
    page.feed(html)
    assert "script" not in page.tags
    assert page.handlers == []
    assert "<script" not in html
    assert "<img src=x" not in html


def test_the_text_shows_names_as_they_are(hostile: RunFolder) -> None:
    text = write_pack_report(hostile).markdown.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<img src=x" not in text
    assert not re.search(r"(?<!\\)\]\(javascript:", text)


@pytest.mark.slow
@pytest.mark.filterwarnings(f"ignore:{PANDAS_OF_MLFLOW}")
def test_the_tracker_takes_them(hostile: RunFolder, tmp_path: Path, call: Call, mlflow_store: None) -> None:
    ended = call("mlflow", "sync", hostile.path, "--uri", f"sqlite:///{tmp_path}/mlflow.db")
    assert (ended.code, ended.err) == (0, "")
