"""Tensors and a description in one safetensors file, which is whole or not there.

A table may take more than half of the memory: tensors are written from where they are, and read
into their place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader, BufferedWriter
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from freqsgd.errors import DataError
from freqsgd.files import read_json, replacing

MODEL = "model.safetensors"  # the file of a finished model

FORMAT = 2  # 1: a run's best weights had a file of their own
_HEAD = "head"  # the digest of all but the numbers, in the metadata
_BLOCK = 1 << 24  # bytes that are read or written at a time
_TYPES = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_BY_NAME = {name: kind for kind, name in _TYPES.items()}


def save(path: Path, tensors: Mapping[str, Tensor], description: dict[str, Any]) -> str:
    """Write under a temporary name, and give the file its name once it is on the disk.

    Returns:
        The digest of the content, as :func:`digest` finds it.
    """
    text = json.dumps({"format": FORMAT, **description})
    tensors = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    try:
        with replacing(path, one_name=True) as temporary, temporary.open("wb") as file:
            return _write(file, tensors, text)
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {path}: {reason}; what was saved before is kept") from error


def describe(path: Path) -> dict[str, Any]:
    """Return the description in a file, without its tensors, which are not checked yet."""
    return _open(path)[0]


def holds_words(folder: Path) -> bool:
    """Tell whether the model of a folder is one of words; not so if it cannot be read."""
    try:
        return describe(folder / MODEL).get("model") in ("cbow", "skipgram")
    except DataError:
        return False


def check_folder(folder: Path) -> None:
    """Refuse what is not the folder of a model."""
    if (folder / MODEL).is_file():
        return
    models = sorted(path.parent.name for path in folder.glob(f"models/*/{MODEL}"))
    hint = f"; it is a comparison, whose models are {', '.join(models)} in models/"
    raise DataError(
        f"{folder} is not a model: there is no {MODEL} in it, as freqsgd train writes it"
        + (hint if models else "")
    )


def digest(path: Path) -> str:
    """Return the digest of a file's content, as the file states it: it is not checked."""
    return _open(path)[1].get("digest", "")


def load(
    path: Path, into: Mapping[str, Tensor] | None = None
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save` wrote; refuse a file that is damaged or of another version.

    Args:
        path: the file
        into: tensors to read into where name, shape and type agree; others are new
    """
    description, metadata = _open(path)
    found = _digest(metadata["freqsgd"])
    try:
        with path.open("rb") as file:
            tensors = _read(file, into or {}, found)
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise _damaged(path, error) from error
    _check(path, metadata, found)
    return tensors, description


def read_in_blocks(path: Path) -> Iterator[tuple[str, int, Tensor]]:
    """Yield name, first row and rows of blocks of all tensors, of any size.

    That the file was not changed is known when the last block was taken, and refused then.
    """
    _, metadata = _open(path)
    found = _digest(metadata["freqsgd"])
    with safe_open(path, framework="pt") as file:
        for name in sorted(file.keys()):
            tensor = file.get_slice(name)
            shape, kind = tensor.get_shape(), _BY_NAME[tensor.get_dtype()]
            found.update(_named(name, kind, shape))
            some = max(_BLOCK // (kind.itemsize * prod(shape[1:])), 1)
            for first in range(0, shape[0], some):
                rows: Tensor = tensor[first : first + some]
                for block in _blocks(rows):
                    found.update(block)
                yield name, first, rows
    _check(path, metadata, found)


def _check(path: Path, metadata: Mapping[str, str], found: hashlib.blake2b) -> None:
    """Refuse content that is not what was written."""
    if metadata.get("digest") != found.hexdigest():
        raise _changed(path)


def _changed(path: Path) -> DataError:
    return DataError(f"{path} was changed after it was written: its checksum does not match")


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"{path} is damaged or not a file of freqsgd ({error})")


def _open(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return description and metadata of a file of the right length and format.

    All but the numbers of the tensors is what was written: it is safe to make room for them.
    """
    if not path.is_file():
        raise DataError(f"there is no {path}")
    try:
        with safe_open(path, framework="pt") as file:  # checks that all tensors are there
            metadata: dict[str, str] = file.metadata() or {}
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            shapes = {k: (_BY_NAME[v.get_dtype()], v.get_shape()) for k, v in slices.items()}
        description = read_json(metadata["freqsgd"], dict)
        found = description.pop("format")
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise _damaged(path, error) from error
    if found != FORMAT:
        raise DataError(
            f"{path} has format {found}, this version of freqsgd reads {FORMAT}: use the version "
            "that wrote it, or train again"
        )
    if metadata.get(_HEAD) != _head(metadata["freqsgd"], shapes):
        raise _changed(path)
    return description, metadata


def _write(file: BufferedWriter, tensors: dict[str, Tensor], text: str) -> str:
    digest = _digest(text)
    file.write(_header(tensors, text, digest.hexdigest()))  # of the right length
    with ThreadPoolExecutor(1) as pool:  # the digest is computed while the disk is busy
        for name in sorted(tensors):
            pool.submit(digest.update, _named(name, tensors[name].dtype, tensors[name].shape))
            for block in _blocks(tensors[name]):
                pool.submit(digest.update, block)
        for name in _order(tensors):
            for block in _blocks(tensors[name]):
                file.write(block)
    file.seek(0)
    file.write(_header(tensors, text, digest.hexdigest()))
    return digest.hexdigest()


def _head(text: str, shapes: Mapping[str, tuple[torch.dtype, Sequence[int]]]) -> str:
    """Tell the description and the names, types and shapes of tensors from others."""
    digest = _digest(text)
    for name in sorted(shapes):
        digest.update(_named(name, *shapes[name]))
    return digest.hexdigest()


def _order(tensors: Mapping[str, Tensor]) -> list[str]:
    """Sort names as the file has them: wide numbers first, so that all are aligned."""
    return sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))


def _header(tensors: dict[str, Tensor], text: str, digest: str) -> bytes:
    """Return length and JSON, as the safetensors format has them."""
    head = _head(text, {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()})
    content: dict[str, Any] = {"__metadata__": {"freqsgd": text, "digest": digest, _HEAD: head}}
    end = 0
    for name in _order(tensors):
        tensor = tensors[name]
        start, end = end, end + tensor.nbytes
        kind = _TYPES[tensor.dtype]
        content[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [start, end]}
    header = json.dumps(content, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def _read(
    file: BufferedReader, into: Mapping[str, Tensor], digest: hashlib.blake2b
) -> dict[str, Tensor]:
    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    first = file.tell()
    tensors = {}
    with ThreadPoolExecutor(1) as pool:  # the digest is computed while the disk is busy
        for name in sorted(header.keys() - {"__metadata__"}):
            about = header[name]
            tensors[name] = tensor = _place(name, about, into)
            pool.submit(digest.update, _named(name, tensor.dtype, tensor.shape))
            file.seek(first + about["data_offsets"][0])
            for block in _blocks(tensor):
                if file.readinto(block) != len(block):
                    raise ValueError("it ends too soon")
                pool.submit(digest.update, block)
    return tensors


def _place(name: str, about: dict[str, Any], into: Mapping[str, Tensor]) -> Tensor:
    """Return the tensor to read into."""
    shape, kind = tuple(about["shape"]), _BY_NAME[about["dtype"]]
    given = into.get(name)
    fits = given is not None and (given.shape, given.dtype) == (shape, kind)
    if given is not None and fits and given.is_contiguous():
        return given.detach()
    return torch.empty(shape, dtype=kind)


def _blocks(tensor: Tensor) -> Iterable[memoryview]:
    """Return the tensor's own bytes, some at a time."""
    flat = tensor.view(-1).view(torch.uint8).numpy().data
    return (flat[start : start + _BLOCK] for start in range(0, len(flat), _BLOCK))


def _digest(text: str) -> hashlib.blake2b:
    """Begin the digest of a file with its description."""
    return hashlib.blake2b(text.encode(), digest_size=16)


def _named(name: str, kind: torch.dtype, shape: Sequence[int]) -> bytes:
    """Tell a tensor from others, but for its numbers."""
    return f"{name} {kind} {tuple(shape)}".encode()
