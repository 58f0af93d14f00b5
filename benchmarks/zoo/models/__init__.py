"""The models of the zoo, by name."""

from __future__ import annotations

from benchmarks.zoo.models.bpr import BPRTask
from benchmarks.zoo.models.complex import ComplExTask
from benchmarks.zoo.models.dcnv2 import DCNv2Task
from benchmarks.zoo.models.deepfm import DeepFMTask
from benchmarks.zoo.models.dlrm import DLRMTask
from benchmarks.zoo.models.fm import FMTask
from benchmarks.zoo.models.history import HistoryTask
from benchmarks.zoo.models.sasrec import SASRecTask
from benchmarks.zoo.models.skipgram import SkipGramTask
from benchmarks.zoo.models.two_towers import TwoTowersTask
from benchmarks.zoo.task import Task

MODELS: dict[str, type[Task]] = {
    "fm": FMTask,
    "deepfm": DeepFMTask,
    "dlrm": DLRMTask,
    "dcnv2": DCNv2Task,
    "sasrec": SASRecTask,
    "bpr": BPRTask,
    "two_towers": TwoTowersTask,
    "history": HistoryTask,
    "skipgram": SkipGramTask,
    "complex": ComplExTask,
}
