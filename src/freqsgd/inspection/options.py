"""Options that say what to inspect."""

from __future__ import annotations

from dataclasses import dataclass

from freqsgd.checks import refuse_options, whole_number
from freqsgd.errors import DataError
from freqsgd.tables.catalog import KnownDataset, known_dataset
from freqsgd.tables.spec import TableOptions


@dataclass(frozen=True)
class InspectionOptions(TableOptions):
    """A dataset that is known by name, or files of one's own; no label is needed.

    ``dataset`` may also be text ("zipf-text", ...). Without ``features`` these are all columns but
    the label and numeric ones.

    Args:
        text: whether the path is plain text, as ``TextOptions`` takes it
        numeric_rule: how numbers are put into bins: "log" or "quantiles"
        min_count: tokens that were seen less often count as one token, words are left out; None:
            what training takes, 10 for criteo, 50 for wikitext, 5 for other text, otherwise 1
        dim: size of the vectors whose memory is estimated
    """

    text: bool = False
    numeric_rule: str = "log"
    min_count: int | None = None
    dim: int = 64

    @property
    def is_text(self) -> bool:
        """Whether words are inspected, not the columns of a table."""
        return self.text or (self.path is None and self._known().kind == "text")

    @property
    def name(self) -> str:
        """The dataset that is known by name, if there is no path."""
        return "synthetic" if self.dataset is None else self.dataset

    def _known(self) -> KnownDataset:
        return known_dataset(self.name, "table", "text")

    def check(self) -> None:
        """Raise unless the options fit together."""
        columns = ("label", "features", "numeric", "numeric_rule", "separator", "columns")
        if self.path == "":
            raise DataError("the path of the data is empty: name a file or folder")
        if self.path is not None:
            refuse_options(self, "own files", "dataset")
        else:
            self._known()
            refuse_options(self, f"the dataset {self.name}", "text", *columns)
        if self.is_text:
            refuse_options(self, "text", *columns, "max_bad_rows")
        if self.label == "":
            raise DataError(f"{self.path}: the name of the label is empty")
        for name in ("dim", "min_count", "max_bad_rows"):
            if (value := getattr(self, name)) is not None:
                whole_number(name.replace("_", " "), value, least=int(name != "max_bad_rows"))
        super().check()
