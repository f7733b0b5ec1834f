"""Writes data/embedded/graphs/*.onnx and what data/embedded/manifest.json says of them.  usage: python scripts/embedded/export.py [FOLDER]

The backward pass is first traced to ATen operations (make_fx over torch.func.grad, symbolic so that the batch stays
dynamic), then exported: torch.export cannot trace through torch.func.grad with dynamic shapes itself.
"""

import hashlib
import json
import sys
import warnings
from pathlib import Path

import onnx
import torch
from torch._decomp import core_aten_decompositions
from torch.fx.experimental.proxy_tensor import make_fx

from model import Config, decode_function, parameter_count, parameter_shapes, prefill_function, train_function

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.manual_seed(0)

TRAIN_INPUTS = ["flat", "prompt", "prompt_length", "completion", "target", "weight", "advantage", "old_logprob", "settings"]
PREFILL_INPUTS = ["flat", "prompt", "prompt_length"]
DECODE_INPUTS = ["flat", "token", "step", "prompt_length", "prompt_keys", "prompt_values", "own_keys", "own_values"]


def with_named_inputs(function, names):
    """A module whose forward has these parameter names: they become the graph's input names."""
    scope = {"torch": torch}
    arguments = ", ".join(names)
    exec(  # noqa: S102 - the names are the constants above
        "class Named(torch.nn.Module):\n"
        "    def __init__(self, function):\n        super().__init__()\n        self.function = [function]\n"
        f"    def forward(self, {arguments}):\n        return self.function[0]({arguments})\n",
        scope,
    )
    return scope["Named"](function)


def export(function, example, dynamic, inputs, outputs, path):
    traced = make_fx(function, decomposition_table=core_aten_decompositions(), tracing_mode="symbolic")(*example)
    program = torch.export.export(with_named_inputs(traced, inputs), example, dynamic_shapes=dynamic, strict=False)
    for node in list(program.graph_module.graph.nodes):
        # the ONNX translation of full_like knows no memory_format; here it is always the one of a scalar
        if node.target is torch.ops.aten.full_like.default:
            node.kwargs = {key: value for key, value in node.kwargs.items() if key != "memory_format"}
        # torch 2.9: the guard call of a *args signature breaks run_decompositions
        if node.op == "call_module" and "_guards_fn" in str(node.target):
            program.graph_module.graph.erase_node(node)
    program.graph_module.recompile()
    exported = torch.onnx.export(
        program, dynamo=True, input_names=inputs, output_names=outputs, opset_version=18, optimize=True, verbose=False
    )
    graph = exported.model_proto
    for node in graph.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    del graph.graph.value_info[:]
    del graph.graph.metadata_props[:]
    onnx.checker.check_model(graph)
    onnx.save(graph, path)
    print(path, path.stat().st_size, "bytes", sha256(path), flush=True)


def main(folder):
    c = Config.load()
    graphs = folder / "graphs"
    graphs.mkdir(parents=True, exist_ok=True)
    # Symbolic tracing takes equal sizes for the same symbol: the example batch differs from every other size.
    P, T, G, D, i32 = 37, c.maxPrompt, c.maxCompletion, c.head_width, torch.int32
    flat = torch.randn(parameter_count(c)) * 0.05
    batch = torch.export.Dim.DYNAMIC

    def lengths():
        return torch.randint(5, T, (P,), dtype=i32)

    def ids(*shape):
        return torch.randint(0, c.vocabulary, shape, dtype=i32)

    first = {0: batch}
    for name, n in (("train", c.groupSize), ("train1", 1)):
        S = T + n * G
        example = (flat, ids(P, T), lengths(), ids(P, n, G), ids(P, S), torch.rand(P, S), torch.randn(P, S), -torch.rand(P, S), torch.tensor([1.0, 0.2, 0.2]))
        export(train_function(c), example, (None, *[first] * 7, None), TRAIN_INPUTS, ["loss", "gradient", "logprob"], graphs / f"{name}.onnx")
    export(prefill_function(c), (flat, ids(P, T), lengths()), (None, first, first), PREFILL_INPUTS, ["prompt_keys", "prompt_values"], graphs / "prefill.onnx")
    second = {1: batch}
    for name, n in (("decode", c.groupSize), ("decode1", 1)):
        prompt_cache = (c.layers, P, c.heads, T, D)
        own_cache = (c.layers, P, c.heads, n, G, D)
        example = (flat, ids(P, n), torch.tensor(3, dtype=i32), lengths(), torch.randn(prompt_cache), torch.randn(prompt_cache), torch.randn(own_cache), torch.randn(own_cache))
        export(decode_function(c), example, (None, first, None, first, *[second] * 4), DECODE_INPUTS, ["logits", "new_keys", "new_values"], graphs / f"{name}.onnx")
    write_manifest(folder, c)


def write_manifest(folder, c):
    """Replaces what the manifest says of model and graphs; what it says of the weights stays."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) if path.exists() else {}
    manifest["formatVersion"] = 1
    manifest["model"] = {
        **c.__dict__,
        "parameters": [{"name": name, "shape": list(shape)} for name, shape in parameter_shapes(c)],
    }
    manifest["graphs"] = {
        file.stem: {"file": f"graphs/{file.name}", "bytes": file.stat().st_size, "sha256": sha256(file)}
        for file in sorted((folder / "graphs").glob("*.onnx"))
    }
    path.write_text(json.dumps(manifest, indent=2) + "\n")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "data" / "embedded")
