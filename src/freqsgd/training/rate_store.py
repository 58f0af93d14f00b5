"""What the learning rates of a comparison leave in its folder: records, and the best model."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from freqsgd.data.dataset import DataError
from freqsgd.data.files import make_folder, read_json, write_json
from freqsgd.training.resuming import BEFORE
from freqsgd.training.rules import Rule

__all__ = ["RATES", "RateStore"]

RATES = "rates"


class RateStore:
    """The rates that are finished, so that a resumed comparison does not run them again.

    A rate is trained in a folder of its own. When it ends its record is written, and then the
    folder becomes that of the optimizer's model, or goes: what a kill leaves undone is done by
    the next call of :meth:`settle`.

    Args:
        folder: of the comparison
        shared: options of all rates; a record that was made with others is refused
    """

    def __init__(self, folder: Path, shared: dict[str, Any]) -> None:
        self._folder, self._shared = folder, shared

    def place(self, rule: Rule) -> Path:
        """The folder in which a rate is trained."""
        return self._folder / RATES / f"{rule.optimizer}-{rule.lr:g}"

    def check_rates(self, rules: list[Rule]) -> None:
        """Refuse what is not the beginning of a comparison of these rates of an optimizer.

        Of the rates that are finished only the best has left its model, which might not be the
        best of others.
        """
        found = set(self._folder.glob(f"{RATES}/{rules[0].optimizer}-[0-9]*.json"))
        if found != {self._path(rule) for rule in rules[: len(found)]}:
            rates = ", ".join(sorted(path.stem for path in found))
            raise DataError(
                f"{self._folder} holds a comparison of other rates ({rates}): use another --out"
            )

    def record(self, rule: Rule) -> dict[str, Any] | None:
        """The record of a rate that is finished."""
        path = self._path(rule)
        if not path.exists():
            return None
        try:
            saved = read_json(path.read_bytes(), dict)
            record: dict[str, Any] = saved["record"]
            then: dict[str, Any] = BEFORE | saved["asked"]
            if "checksum" in saved and saved["checksum"] != _checksum(saved):
                raise ValueError("it was changed after it was written")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} is damaged ({error}): remove it to run this rate again"
            ) from error
        for name, now in self._asked(rule).items():
            if then.get(name) != now:
                raise DataError(
                    f"cannot resume from {path}: it was written with {name} {then.get(name)}, now "
                    f"{name} is {now}; use the same options and data, or another folder"
                )
        return record

    def keep(self, rule: Rule, record: dict[str, Any]) -> None:
        """Write the record of a rate that is finished."""
        content: dict[str, Any] = {"asked": self._asked(rule), "record": record}
        content["checksum"] = _checksum(content)
        write_json(self._path(rule), content)

    def settle(self, rule: Rule, model: Path, best: bool) -> None:
        """The folder of a finished rate becomes that of the model if it is the best, or goes."""
        place = self.place(rule)
        if not place.exists():
            return
        if best:
            shutil.rmtree(model, ignore_errors=True)
            make_folder(model.parent)
            place.replace(model)
        else:
            shutil.rmtree(place)

    def _asked(self, rule: Rule) -> dict[str, Any]:
        """Options, as JSON reads them back."""
        asked: dict[str, Any] = json.loads(json.dumps({**self._shared, **rule.plain}))
        return asked

    def _path(self, rule: Rule) -> Path:
        place = self.place(rule)
        return place.with_name(f"{place.name}.json")


def _checksum(content: dict[str, Any]) -> str:
    """Tell what is asked for and the record from others."""
    text = json.dumps([content["asked"], content["record"]], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
