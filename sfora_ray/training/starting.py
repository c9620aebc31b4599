"""What a member starts from: the weights of its backbone and, with a trained teacher, those of the teacher."""

from __future__ import annotations

from sfora_ray.config.pack import PackConfig
from sfora_ray.files import sha256_of
from sfora_ray.models import weights_identity
from sfora_ray.models.weights import existing_file


def starting_weights(config: PackConfig) -> str:
    """Return the identity of the backbone's weights and of a trained teacher's, or ``none`` for a random start.

    Raises:
        WeightsError: a file is absent.
    """
    own = weights_identity(config.model)
    teacher = config.recipe.teacher_file
    if teacher is None:
        return own
    return f"{own}; teacher {teacher} sha256:{sha256_of(existing_file(teacher))}"
