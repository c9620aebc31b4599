"""Queries and what was found for them, as pictures; in words where the pictures are not at hand any more."""

from __future__ import annotations

from pathlib import Path

from sfora_ray.data.base import ImageDataset, ImageTable
from sfora_ray.data.unreadable import without
from sfora_ray.errors import DataError, SforaError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import Summary
from sfora_ray.reporting.blocks import Paragraph, Section, Sheet, Tile, Verdict
from sfora_ray.reporting.neighbours import Finds, find_neighbours
from sfora_ray.reporting.pictures import encode

_TITLE = "Nearest neighbours"
_ALT = {"query": "Query", "right": "Right neighbour", "wrong": "Wrong neighbour"}


def neighbours_section(run: RunFolder, summary: Summary, cache_dir: Path) -> Section:
    """Return the picture sheet, or a sentence that says why there is none; that never stops a report."""
    try:
        dataset = _dataset(run, summary, cache_dir)
        sheet = _sheet(find_neighbours(run), dataset.test)
    except (SforaError, OSError) as error:
        return Section(
            _TITLE,
            (Paragraph(f"The picture sheet is missing, for its images or embeddings are: {error}", "warning"),),
        )
    return Section(_TITLE, (Paragraph(_EXPLANATION), sheet))


_EXPLANATION = (
    "Test images as queries and their five nearest neighbours among all other test images, by the "
    "concatenation of the "
    "finished members. The choice is seeded and shows failures on purpose: up to half of the queries "
    "have a wrong first "
    "neighbour, so the share of wrong ones here says nothing about Recall@1."
)


def _dataset(run: RunFolder, summary: Summary, cache_dir: Path) -> ImageDataset:
    manifest = run.manifest()
    dataset = without(manifest.config.data.load(cache_dir), manifest.left_out)
    if dataset.digest != summary.pack.dataset_digest:
        raise DataError(
            f"data {dataset.name}: the images or classes changed since the pack was trained, got "
            f"digest {dataset.digest} "
            f"for {summary.pack.dataset_digest}. Restore the data to see the pictures."
        )
    return dataset


def _sheet(finds: Finds, table: ImageTable) -> Sheet:
    row_of = {identifier: row for row, identifier in enumerate(table.ids)}
    rows = []
    for number, (query, neighbours) in enumerate(zip(finds.queries, finds.found, strict=True)):
        tiles = [_tile(table, row_of, str(finds.ids[query]), f"q{number:02d}-query", "query")]
        for place, neighbour in enumerate(neighbours, 1):
            verdict: Verdict = "right" if finds.labels[neighbour] == finds.labels[query] else "wrong"
            tiles.append(_tile(table, row_of, str(finds.ids[neighbour]), f"q{number:02d}-n{place}", verdict))
        rows.append(tuple(tiles))
    caption = (
        "Each row: the query, then its neighbours from near to far. "
        "Solid frame and ✓: same class. Dashed frame and ✗: another."
    )
    return Sheet(caption, tuple(rows))


def _tile(table: ImageTable, row_of: dict[str, int], identifier: str, stem: str, verdict: Verdict) -> Tile:
    row = row_of.get(identifier)
    if row is None:
        raise DataError(f"data: image '{identifier}' is not in the test split any more. Restore the data to see it.")
    content, ending = encode(table.images[row])
    class_name = table.class_names[int(table.labels[row])]
    return Tile(f"{stem}.{ending}", content, f"{_ALT[verdict]}: {class_name}", class_name, verdict)
