"""``fold``: other folds on a pack that is trained already."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sfora_ray.errors import RunFolderError
from sfora_ray.folds import parse_fold
from sfora_ray.pack.local import blocks_from_folder, train_moments
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import Summary
from sfora_ray.workflows.finish import score_pack, tell_everything, write_pack_report


def refold(run: RunFolder, folds: Sequence[str], *, say: Callable[[str], None]) -> Summary:
    """Fit and score the folds (those of the config if none are named), and renew summary, report and tracker.

    Raises:
        InputError: a fold is not known or does not fit, or no member has finished; nothing is changed then.
    """
    config = run.manifest().config
    # The config's own come first, so that what ships stays what it was; folds fitted before stay as well.
    wanted = [*config.folds, *(parse_fold(text) for text in (*run.fold_names(), *folds))]
    finished = run.finished()
    if not finished:
        raise RunFolderError(f"{run.path}: no member has finished. Finish it with `sfora-ray pack resume {run.path}`.")
    tracker = config.tracking.build()
    tracker.check()
    say("reading embeddings")
    blocks = blocks_from_folder(run, finished)
    summary = score_pack(run, blocks, train_moments(blocks), wanted, say=say)
    write_pack_report(run)
    mirror = Mirror(run, tracker)
    mirror.open()
    tell_everything(run, mirror, config.tracking, "FINISHED")
    return summary
