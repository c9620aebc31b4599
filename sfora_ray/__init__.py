"""Packs of deep metric learning models on Ray: trained, gathered, folded, scored and logged.

Importing this package loads none of ray, mlflow or matplotlib; each lives behind one room's door.
"""

__version__ = "0.1.0"
