"""``paper.json``, which ``freqsgd paper`` writes (docs/paper.md)."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from msgspec import Meta, Struct

from freqsgd.documents.results import Machine

NOT_MEASURED: Final = "not measured"
Verdict = Literal["agrees", "agrees in part", "differs", "not measured"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Ruling(Struct, frozen=True):
    """Something that was asked of a run, and the answer."""

    run: str = ""
    says: str = ""
    holds: bool | None = None
    measured: str = ""


class PaperRun(Struct, frozen=True):
    """A command that measured something."""

    title: str = ""
    command: str | None = None
    stand_in: bool = False
    dataset: str | None = None
    smaller: str = ""  # in what it is less than the paper's
    status: str = "not asked"
    why: str = ""
    seconds: float | None = None
    budget: float = 0.0
    document: str | None = None  # beside paper.json
    report: str | None = None

    @property
    def label(self) -> str:
        """Its title; generated data in the place of others are always said to be that."""
        return f"{self.title} (stand-in: generated data)" if self.stand_in else self.title


class PaperFigure(Struct, frozen=True):
    """A figure or table of the paper."""

    name: Annotated[str, Meta(pattern="^[a-z0-9-]+$")]  # part of names of files and links
    number: str = ""
    title: str = ""
    claim: str = ""
    brief: str = ""
    private: str = ""
    rates: dict[str, dict[str, float]] = {}  # of the paper, by model and optimizer
    data: str = "none"
    verdict: Verdict = NOT_MEASURED
    rules: tuple[Ruling, ...] = ()
    runs: tuple[str, ...] = ()
    command: str | None = None

    @property
    def is_on_stand_in(self) -> bool:
        """Whether generated data stand in for those of the paper."""
        return self.data == "stand-in"


class PaperSummary(Struct, frozen=True, kw_only=True):
    """All figures, and what was run for them."""

    schema: int
    kind: str
    created: str | None = None
    mode: str | None = None
    command: str | None = None
    machine: Machine = Machine()
    seconds: float | None = None
    figures: Annotated[tuple[PaperFigure, ...], Meta(min_length=1)]
    runs: dict[str, PaperRun] = {}
