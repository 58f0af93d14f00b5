"""The registry of recommender models: an entry per model, which everything else asks."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freqsgd.nn.fm import FM


@dataclass(frozen=True)
class Model:
    """A kind of model.

    Its classes are named, and imported when they are used: commands read the names of models
    without torch.

    Args:
        name: name in ``--model``
        title: name in reports
        dim: the size of the vectors in the paper, which is the default
        network: whether it has a network, of ``hidden`` layers with ``dropout``, that torch runs
        module: "module:class" of the model itself
        engine: "module:class" of its engine, which trains it
        predictor: "module:class" of its predictor
    """

    name: str
    title: str
    dim: int
    network: bool
    module: str
    engine: str
    predictor: str

    def load(self, part: str) -> Any:
        """Import the class of a part: "module", "engine" or "predictor"."""
        module, _, name = getattr(self, part).partition(":")
        return getattr(import_module(f"freqsgd.{module}"), name)

    def options(self, hidden: tuple[int, ...], dropout: float) -> dict[str, Any]:
        """Return the options of the network, if there is one."""
        return {"hidden": hidden, "dropout": dropout} if self.network else {}

    def shape(self, model: FM) -> dict[str, Any]:
        """Return the arguments that build a model of the same shape again."""
        names = ("sizes", "widths", "dim", *(("hidden", "dropout") if self.network else ()))
        return {name: getattr(model, name) for name in names}


MODELS = {
    model.name: model
    for model in (
        Model(
            "fm",
            "FM",
            dim=64,
            network=False,
            module="nn.fm:FM",
            engine="recommender.engine:Engine",
            predictor="recommender.predict:Predictor",
        ),
        Model(
            "deepfm",
            "DeepFM",
            dim=16,
            network=True,
            module="nn.fm:DeepFM",
            engine="recommender.engine:DeepEngine",
            predictor="recommender.predict:DeepPredictor",
        ),
    )
}


def model_of(model: FM) -> Model:
    """Return the entry of a module, or of its nearest base class that has one."""
    entries = {each.load("module"): each for each in MODELS.values()}
    return next(entries[base] for base in type(model).__mro__ if base in entries)
