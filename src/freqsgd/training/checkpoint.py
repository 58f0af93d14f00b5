"""Tensors and a description in one safetensors file, which is whole or not there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from freqsgd.data.dataset import DataError
from freqsgd.data.files import replacing

__all__ = ["FORMAT", "load", "save"]

FORMAT = 1


def save(path: Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
    """Write under a temporary name, and give the file its name once it is on the disk."""
    text = json.dumps({"format": FORMAT, **description})
    tensors = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    metadata = {"freqsgd": text, "digest": _digest(tensors, text)}
    one_name = path.with_name(f".{path.name}.tmp")  # so that a killed process leaves one file
    try:
        with replacing(path, one_name) as temporary:
            temporary.touch()
            mode = temporary.stat().st_mode
            save_file(tensors, temporary, metadata)
            temporary.chmod(mode)  # as files of this user are; save_file hides it from others
    except (OSError, SafetensorError) as error:
        raise DataError(f"cannot write {path}: {error}; what was saved before is kept") from error


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save` wrote; refuse a file that is damaged or of another version."""
    if not path.is_file():
        raise DataError(f"there is no {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text = metadata["freqsgd"]
        description: dict[str, Any] = json.loads(text)
        found = description.pop("format")
    except (OSError, SafetensorError, KeyError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is damaged or not a file of freqsgd ({error})") from error
    if found != FORMAT:
        raise DataError(
            f"{path} has format {found}, this version of freqsgd reads {FORMAT}: use the version "
            "that wrote it, or train again"
        )
    if metadata.get("digest") != _digest(tensors, text):
        raise DataError(f"{path} was changed after it was written: its checksum does not match")
    return tensors, description


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
