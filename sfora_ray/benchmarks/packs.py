"""Made-up packs of real size: members that see one signal, each in its own axes and with its own noise."""

from __future__ import annotations

import numpy as np

from sfora_ray.arrays import Float32, Int64, l2_normalize
from sfora_ray.randomness import numpy_generator


def made_up_pack(members: int, rows: int, dim: int, per_class: int) -> tuple[list[Float32], Int64]:
    """Return ``members`` blocks ``(rows, dim)`` of unit rows, and labels with ``per_class`` rows each."""
    generator = numpy_generator(0, "benchmark", members, rows, dim)
    labels = np.arange(rows) // per_class
    centres = generator.standard_normal((labels[-1] + 1, dim), dtype=np.float32)
    signal = centres[labels] + generator.standard_normal((rows, dim), dtype=np.float32)
    blocks = []
    for _ in range(members):
        turn = np.linalg.qr(generator.standard_normal((dim, dim), dtype=np.float32))[0]
        noisy = signal @ turn + generator.standard_normal((rows, dim), dtype=np.float32)
        blocks.append(np.asarray(l2_normalize(noisy), dtype=np.float32))
    return blocks, labels
