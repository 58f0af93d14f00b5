"""Errors and warnings of the package; those of one module alone are defined there."""

from __future__ import annotations

__all__ = ["DamagedFileError", "DataError", "DataWarning", "DivergedError", "InterruptedFitError"]


class DataError(ValueError):
    """Input that cannot be used: says what is wrong, where, and what to do."""


class DamagedFileError(DataError):
    """A file that is empty, cut short or damaged, or cannot be read from some row on."""


class DataWarning(UserWarning):
    """Input that was used in part: says what was left out and where it is."""


class DivergedError(ArithmeticError):
    """The loss is not a finite number, or ``said`` says what else is wrong with it."""

    def __init__(self, step: int, said: str = "is not a finite number") -> None:
        super().__init__(f"the loss {said} in step {step}")
        self.step = step


class InterruptedFitError(Exception):
    """Ctrl-C ended the training; what was done so far is saved where there is a folder."""
