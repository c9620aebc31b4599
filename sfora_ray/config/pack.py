"""The whole configuration of a pack: nested, frozen, typed; each part owns its own fields."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveFloat, PositiveInt, field_validator, model_validator

from sfora_ray.config.fitting import misfits
from sfora_ray.data import DATASETS
from sfora_ray.data.base import DatasetOptions
from sfora_ray.data.transforms import InputOptions
from sfora_ray.folds import AnyFold
from sfora_ray.losses import LOSSES
from sfora_ray.losses.base import LossOptions
from sfora_ray.mining import MINERS, MinerOptions
from sfora_ray.models import ModelOptions
from sfora_ray.options import Options, one_of
from sfora_ray.recipes import RECIPES
from sfora_ray.recipes.base import RecipeOptions
from sfora_ray.samplers import SAMPLERS, SamplerOptions
from sfora_ray.storage import below, bucket_and_prefix, fault_of, is_address
from sfora_ray.tracking import TRACKERS, MlflowOptions
from sfora_ray.tracking.base import TrackingOptions

if TYPE_CHECKING:
    AnyDataset = DatasetOptions
    AnySampler = SamplerOptions
    AnyLoss = LossOptions
    AnyMiner = MinerOptions
    AnyRecipe = RecipeOptions
    AnyTracker = TrackingOptions
else:
    AnyDataset = one_of(DATASETS)
    AnySampler = one_of(SAMPLERS)
    AnyLoss = one_of(LOSSES)
    AnyMiner = one_of(MINERS)
    AnyRecipe = one_of(RECIPES)
    AnyTracker = one_of(TRACKERS)


def _refuse_no_folder_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,79}", name):
        raise ValueError("must be 1 to 80 of a-z, 0-9, '-' and '_', for it names a folder")
    return name


Seed = Annotated[int, Field(ge=0, lt=2**63)]
Slug = Annotated[str, AfterValidator(_refuse_no_folder_name)]
"""What names a folder."""


class OptimizerOptions(Options):
    """The optimiser, its base rates and gradient clipping."""

    name: Literal["adamw", "adam"] = "adamw"
    """`adamw` decays weights apart from the gradient; `adam` adds L2 to it, as the HIST program does."""
    lr: PositiveFloat = 1e-4
    """Rate of the backbone; the rates that a loss derives from a factor start here."""
    head_lr: PositiveFloat | None = None
    """Rate of the embedding head; the backbone's where absent."""
    weight_decay: float = Field(default=1e-4, ge=0)
    epsilon: PositiveFloat = 1e-8
    """Added to the root of the second moment; at 1 (ProxyNCA++'s program) steps grow with the gradient, as in SGD."""
    clip_value: PositiveFloat | None = None
    """Clip each gradient entry to this size (Proxy Anchor's program: 10)."""
    clip_norm: PositiveFloat | None = None
    """Clip the norm of all gradients together."""


class ScheduleOptions(Options):
    """Learning rates over epochs."""

    name: Literal["step", "cosine", "constant"] = "step"
    every_epochs: PositiveInt = 10
    """`step`: multiply by `gamma` after this many epochs."""
    gamma: float = Field(default=0.5, gt=0, le=1)
    delay_epochs: NonNegativeInt = 0
    """The schedule begins after so many epochs; HIST's own program does not count its warm-up epoch."""
    warmup_epochs: NonNegativeInt = 1
    """First epochs in which only the head and the loss's own parameters learn."""


class TrainingOptions(Options):
    """The loop of one member."""

    epochs: PositiveInt = 60
    evaluate_every: PositiveInt = 5
    """Evaluate every so many epochs, and after the last."""
    checkpoint_every: PositiveInt = 1
    """Save the whole loop state every so many epochs."""
    checkpoint_steps: PositiveInt | None = None
    """Save it also within an epoch, every so many steps; worth it where an epoch takes longer than you like to lose."""
    progress_seconds: float = Field(default=1.0, ge=0)
    """How often `progress.json` is rewritten at most, and a request to stop is looked for."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Precision of the network; losses, parameters and optimiser stay in fp32."""
    channels_last: bool = False
    compile: bool = False
    """Compile the student's forward pass; a teacher, and the recipe `adversarial`, run as they are."""
    deterministic: bool = True
    """Same spec, same hardware, same bits; off, CUDA may choose faster kernels that differ in the last bit."""
    loader_workers: NonNegativeInt = 0
    """Loader processes of each worker; the batches are the same for any number."""


class SelectionOptions(Options):
    """Which epoch of a member is kept, and judged by what."""

    split: Literal["validation", "test", "last"] = "validation"
    """`validation`: best on held-out training classes. `test`: best on the test classes, as papers print it."""
    metric: Literal["recall_at_1", "map_at_r"] = "recall_at_1"
    validation_fraction: float = Field(default=0.2, gt=0, lt=1)
    """Share of the training classes held out of training, for `validation` only."""
    validation_seed: NonNegativeInt = 0
    """Names the choice of held-out classes, or how classes are dealt to folds."""
    validation_folds: int | None = Field(default=None, ge=2)
    """Deal the training classes to so many folds and hold out one of them, in place of a fraction."""
    validation_fold: NonNegativeInt = 0
    """Which fold is held out, counted from 0."""

    @model_validator(mode="after")
    def _fold_is_there(self) -> SelectionOptions:
        if self.validation_fold >= (self.validation_folds or 1):
            raise ValueError(
                f"validation_fold ({self.validation_fold}) must be below validation_folds ({self.validation_folds})"
            )
        return self


class EvaluationOptions(Options):
    """How retrieval is scored."""

    singletons: Literal["skip", "miss"] = "skip"
    """A query whose class has one image is left out (and counted), or counts as a miss."""
    nmi: bool = True
    batch_size: PositiveInt = 128
    curve_subsets: PositiveInt = 20
    """At most so many member subsets of each pack size in the pack-size curve."""


class ResourceOptions(Options):
    """What each member is given."""

    workers_per_member: PositiveInt = 1
    """More than one trains a member data-parallel."""
    cpus_per_worker: PositiveInt = 1
    """Also the number of threads that torch uses, so that results do not depend on the machine's cores."""
    gpus_per_worker: float = Field(default=0, ge=0)
    """A fraction shares a GPU between members."""
    memory_gigabytes_per_worker: PositiveFloat | None = None
    """Main memory that Ray sets aside for each worker; where absent, memory does not limit how many members run."""
    max_concurrent_members: PositiveInt | None = None
    """At most so many members at a time; as many as fit where absent."""
    max_failures: NonNegativeInt = 2
    """How often a member starts again from its checkpoint after its worker or node was lost."""
    object_store_fraction: float = Field(default=0.6, gt=0, le=1)
    """Embeddings that take more than this share of Ray's object store are read from the run folder instead."""
    schedule_timeout_seconds: PositiveFloat = 600
    """How long a member may wait for resources before the pack gives up and names what is missing."""

    @field_validator("gpus_per_worker")
    @classmethod
    def _whole_or_a_share(cls, gpus: float) -> float:
        if gpus > 1 and gpus != int(gpus):
            raise ValueError("must be a share below 1 or a whole number, for Ray knows no other")
        return gpus


class PackConfig(Options):
    """A pack: which members to train on what, how to fold and score them, and where to say so."""

    name: Slug
    seeds: tuple[Seed, ...] = (0, 1, 2, 3, 4)
    """One member per seed."""
    min_members: PositiveInt = 1
    """A pack of which fewer members finish is not folded."""
    data: AnyDataset
    input: InputOptions = InputOptions()
    sampler: AnySampler
    model: ModelOptions
    loss: AnyLoss
    miner: AnyMiner | None = None
    """Chooses which pairs or triplets of a batch count, for a loss of such; all of them where absent."""
    recipe: AnyRecipe
    optimizer: OptimizerOptions = OptimizerOptions()
    schedule: ScheduleOptions = ScheduleOptions()
    training: TrainingOptions = TrainingOptions()
    selection: SelectionOptions = SelectionOptions()
    evaluation: EvaluationOptions = EvaluationOptions()
    folds: tuple[AnyFold, ...] = ()
    """Folds beside the concatenation. The first that ends at one member's width and sees no test image ships."""
    resources: ResourceOptions = ResourceOptions()
    tracking: AnyTracker = MlflowOptions()
    output: str = "runs"
    """Folder that holds the run folders, or a place in an object store such as `s3://bucket/prefix`."""
    cache_dir: Path = Path("~/.cache/sfora_ray")
    """Where prepared data are kept on each node and shared by its members."""

    @field_validator("seeds")
    @classmethod
    def _seeds_differ(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if not seeds:
            raise ValueError("must name at least one seed")
        if len(set(seeds)) != len(seeds):
            raise ValueError("must not repeat a seed, for two members would be the same model")
        return seeds

    @field_validator("output")
    @classmethod
    def _is_a_folder_or_a_store(cls, output: str) -> str:
        if not output:
            raise ValueError("must name a folder, or a place in an object store such as s3://bucket/prefix")
        fault = fault_of(output) if is_address(output) else ""
        if fault:
            raise ValueError(fault)
        return output

    @field_validator("tracking", mode="before")
    @classmethod
    def _mlflow_unless_named(cls, tracking: Any) -> Any:
        return {"name": "mlflow", **tracking} if isinstance(tracking, dict) else tracking

    @model_validator(mode="after")
    def _parts_fit_together(self) -> PackConfig:
        problems = misfits(self.loss, self.miner, self.recipe, self.sampler, dim=self.model.training_dim)
        if problems:
            raise ValueError("; ".join(problems))
        if self.min_members > len(self.seeds):
            raise ValueError(
                f"min_members ({self.min_members}) must not be above the number of seeds ({len(self.seeds)})"
            )
        if self.schedule.warmup_epochs >= self.training.epochs or self.schedule.delay_epochs >= self.training.epochs:
            raise ValueError(
                f"schedule.warmup_epochs ({self.schedule.warmup_epochs}) and schedule.delay_epochs "
                f"({self.schedule.delay_epochs}) must be below training.epochs ({self.training.epochs}), or the "
                "backbone never learns"
            )
        if self.sampler.batch_size % self.resources.workers_per_member:
            raise ValueError(
                f"sampler.batch_size ({self.sampler.batch_size}) must be a multiple of resources.workers_per_member "
                f"({self.resources.workers_per_member}), for every worker takes the same share of a batch"
            )
        return self

    def plain(self) -> dict[str, Any]:
        """Return the whole configuration as JSON values."""
        return self.model_dump(mode="json")

    def digest(self) -> str:
        """Return ten hexadecimal digits that name what is computed; see :func:`digest_of`."""
        return digest_of(self.plain())

    @property
    def output_folder(self) -> Path:
        """Return the local folder that holds the run folders, or their working copies where they are in a store."""
        if not is_address(self.output):
            return Path(self.output).expanduser()
        return self.cache_dir.expanduser() / "stores" / "runs" / bucket_and_prefix(self.output)

    @property
    def run_address(self) -> str:
        """Return where in an object store the pack's run folder is, or an empty string if it is a folder here."""
        return below(self.output, self.run_name) if is_address(self.output) else ""

    @property
    def run_name(self) -> str:
        """Return the name of the pack's run folder: ``<name>-<digest10>``."""
        return f"{self.name}-{self.digest()}"


_CHANGES_NO_RESULT = {
    "resources": (
        "max_concurrent_members",
        "max_failures",
        "schedule_timeout_seconds",
        "memory_gigabytes_per_worker",
        "object_store_fraction",
    ),
    "training": ("checkpoint_every", "checkpoint_steps", "progress_seconds", "loader_workers"),
    "input": ("cache_gigabytes", "max_unreadable"),
}
_LATER_KEYS: Mapping[tuple[str, ...], Any] = {
    ("data", "coarse"): None,
    ("miner",): None,
    ("model", "pooling_k"): 1,
    ("optimizer", "epsilon"): 1e-8,
    ("recipe", "base"): {"name": "plain"},
    ("selection", "validation_folds"): None,
    ("selection", "validation_fold"): 0,
}
"""Keys that are younger than many run folders, with what they stand at: there a pack keeps the digest it had."""


def digest_of(plain: Mapping[str, Any]) -> str:
    """Return the digest of a configuration as JSON values.

    Where results go (`output`, `tracking`, `cache_dir`), how many members must finish, run at a time or may wait, how
    often they are tried and saved, and how images are loaded do not change what is computed and are left out.
    """
    values = {
        key: value for key, value in plain.items() if key not in ("output", "tracking", "cache_dir", "min_members")
    }
    for part, unseen in _CHANGES_NO_RESULT.items():
        values[part] = {key: value for key, value in values[part].items() if key not in unseen}
    for path, default in _LATER_KEYS.items():
        values = _without(values, path, default)
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:10]


def _without(values: dict[str, Any], path: tuple[str, ...], default: Any) -> dict[str, Any]:
    """Return the values without the one at ``path``, if it is there and stands at its default."""
    key, *rest = path
    if key not in values:
        return values
    if rest:
        return {**values, key: _without(values[key], tuple(rest), default)}
    return {name: value for name, value in values.items() if name != key or value != default}
