"""MLflow's Python models, imported without the warnings that MLflow then raises about type hints of its own."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from mlflow import pyfunc

    # The name alone is lazy: an attribute brings the module in.
    save_model = pyfunc.save_model

__all__ = ["save_model"]
