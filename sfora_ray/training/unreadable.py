"""Training images that became unreadable while a member trained, and that others of their class stood in for."""

from __future__ import annotations

from sfora_ray.data.unreadable import Tolerance, UnreadableImage, names_of
from sfora_ray.files import append_json_line
from sfora_ray.options import Options
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.records import read_records


class UnreadableRecord(Options):
    """One line of ``unreadable.jsonl``."""

    id: str
    reason: str


class UnreadableImages:
    """Counts them over all attempts and workers of a member, each image once."""

    def __init__(self, folder: MemberFolder, at_most: int) -> None:
        self._path = folder.unreadable_path
        self._at_most = at_most
        self._seen: set[str] = set()

    def add(self, image: UnreadableImage) -> None:
        """Record an image that another stands in for.

        Raises:
            DataError: it is one more than the configuration allows.
        """
        if image.id in self._seen:
            return
        self._seen.add(image.id)
        # Read anew, for other workers of the member write there too.
        found = [UnreadableImage(record.id, record.reason) for record in read_records(UnreadableRecord, self._path)]
        if Tolerance(self._at_most, found).add(image):
            append_json_line(self._path, UnreadableRecord(id=image.id, reason=image.reason).model_dump(mode="json"))


def unreadable_warnings(folder: MemberFolder) -> tuple[str, ...]:
    """Return a warning with the number of such images and the first of them, or nothing."""
    ids = list(dict.fromkeys(record.id for record in read_records(UnreadableRecord, folder.unreadable_path)))
    if not ids:
        return ()
    what = f"{len(ids)} training image(s) became unreadable and others of their classes stood in"
    return (f"{what}: {names_of(ids)}",)
