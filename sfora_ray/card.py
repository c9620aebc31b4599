"""What is known of a method: where it comes from and how it was proved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """One row of the table of methods.

    Attributes:
        title: the method's name as the field writes it.
        paper: authors, venue and year; or who defines it where there is no paper.
        checked: what its numbers are compared with in the tests.
        differences: from the authors' program, as far as it is known; ``none known`` otherwise.
    """

    title: str
    paper: str
    checked: str
    differences: str = "none known"
