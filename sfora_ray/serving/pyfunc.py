"""The model that MLflow loads: a file of code beside safetensors and JSON, so that nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.pyfunc import PythonModel, PythonModelContext


class PackedPyfunc(PythonModel):
    """Embeds a data frame whose column ``image`` holds encoded images as bytes."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the packed model beside this file."""
        from sfora_ray.serving.packed import PackedModel

        self._model = PackedModel.load(Path(context.artifacts["packed"]))

    def predict(
        self,
        context: PythonModelContext,  # noqa: ARG002 - MLflow's signature
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """Return ``(N, dim)`` unit vectors, one for each image."""
        return self._model.embed_bytes(list(model_input["image"]))


mlflow.models.set_model(PackedPyfunc())
