"""The models of the zoo, by name."""

from __future__ import annotations

from benchmarks.zoo.models.dcnv2 import DCNv2Task
from benchmarks.zoo.models.deepfm import DeepFMTask
from benchmarks.zoo.models.dlrm import DLRMTask
from benchmarks.zoo.models.fm import FMTask
from benchmarks.zoo.task import Task

MODELS: dict[str, type[Task]] = {
    "fm": FMTask,
    "deepfm": DeepFMTask,
    "dlrm": DLRMTask,
    "dcnv2": DCNv2Task,
}
