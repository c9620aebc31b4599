"""What was run: the data, the parts, every setting and every version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from sfora_ray.pack.run_folder import Manifest
from sfora_ray.pack.summary import PackFacts, Summary
from sfora_ray.reporting.blocks import Block, Bullets, Column, Folded, Paragraph, Section, Table
from sfora_ray.reporting.wording import whole

_PAIR = (Column("Setting"), Column("Value"))


def settings(summary: Summary, manifest: Manifest) -> Section:
    """Return the section of facts; the complete configuration and the versions are folded away."""
    blocks: list[Block] = [Table("The pack", (Column("Fact"), Column("Value")), _facts(summary.pack, manifest))]
    if summary.pack.notes:
        blocks += [Paragraph("Notes on the data and the run:"), Bullets(summary.pack.notes)]
    configuration = tuple(flatten(manifest.config.plain()))
    versions = tuple(sorted((summary.pack.versions or manifest.versions).items()))
    blocks += [
        Folded(
            f"Configuration, all {len(configuration)} settings",
            (Table("Resolved configuration", _PAIR, configuration),),
        ),
        Folded("Versions", (Table("Software", (Column("Package"), Column("Version")), versions),)),
    ]
    return Section("Data and settings", tuple(blocks))


def flatten(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield ``(dotted key, value)`` of nested settings in order; passwords in addresses are hidden."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _plain(value)


def _plain(value: object) -> str:
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return re.sub(r"(//)[^/@\s]+@", r"\1***@", written)


def _facts(pack: PackFacts, manifest: Manifest) -> tuple[tuple[str, str], ...]:
    singletons = f"{whole(pack.num_singletons)} whose class has no other image"
    return (
        ("Data set", f"{pack.dataset} (digest {pack.dataset_digest})"),
        ("Training", f"{whole(pack.train_images)} images of {whole(pack.train_classes)} classes"),
        (
            "Test",
            f"{whole(pack.test_images)} images of {whole(pack.test_classes)} classes, none of them trained on",
        ),
        ("Queries", f"{whole(pack.num_queries)} scored; {singletons}"),
        ("Objective and recipe", f"{pack.objective}, {pack.recipe}"),
        ("Network", f"{pack.backbone}, {pack.dim} dimensions"),
        ("Start weights", manifest.weights or pack.weights or "none (random)"),
        ("Epochs", str(pack.epochs)),
        ("Members", f"{pack.num_members} finished of {pack.num_planned} planned"),
        ("Run", f"{pack.name}-{pack.digest}"),
    )
