"""How well embeddings retrieve: exact metrics, nearest neighbours, and the curve over pack sizes."""

from sfora_ray.retrieval.clusters import kmeans_labels, normalized_mutual_information
from sfora_ray.retrieval.coarse import CoarseScores
from sfora_ray.retrieval.metrics import QueryMetrics
from sfora_ray.retrieval.neighbours import Neighbours, nearest
from sfora_ray.retrieval.pack_curve import pack_curve
from sfora_ray.retrieval.scores import RetrievalScores, Singletons, score, score_against

METRIC_NAMES = (
    "recall_at_1",
    "recall_at_2",
    "recall_at_4",
    "recall_at_8",
    "map_at_r",
    "mean_average_precision",
    "r_precision",
    "nmi",
    "coarse_recall_at_1",
    "coarse_map_at_r",
)

__all__ = [
    "METRIC_NAMES",
    "CoarseScores",
    "Neighbours",
    "QueryMetrics",
    "RetrievalScores",
    "Singletons",
    "kmeans_labels",
    "nearest",
    "normalized_mutual_information",
    "pack_curve",
    "score",
    "score_against",
]
