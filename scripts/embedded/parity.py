"""Writes tests/trainer/embedded/parity.json: what torch says of loss, gradient and AdamW.  usage: python scripts/embedded/parity.py

An independent computation: each completion is its own unpadded sequence behind its prompt (no sharing, no masks of padding),
attention by torch, the loss with plain min and clamp, gradients by torch.autograd. Weights come from a formula over their
index, which the test repeats, so the fixture stays small.
"""

import json
import math
import random
from pathlib import Path

import torch
import torch.nn.functional as F

from model import Config, parameter_shapes, rms_norm, rotate, rotation, unflatten

torch.set_num_threads(1)
BEGIN = 1
ENTRIES = 400


def unit(index):
    """A number of [0, 1) for an index: 32-bit integer arithmetic, the same in Python and JavaScript."""
    x = (index * 2654435761 + 12345) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 2246822519) & 0xFFFFFFFF
    x ^= x >> 13
    return x / 4294967296


def formula_weights(c):
    values, index = [], 0
    for name, shape in parameter_shapes(c):
        for _ in range(math.prod(shape)):
            u = 2 * unit(index) - 1
            if "norm" in name:
                values.append(1 + 0.2 * u)
            elif "bias" in name:
                values.append(0.1 * u)
            else:
                values.append(u * math.sqrt(2 / (shape[1] if name in ("embedding", "position") else shape[0])))
            index += 1
    return torch.tensor(values, dtype=torch.float32)


def plain_logits(c, p, tokens):
    """Logits [S, V] of one sequence."""
    x = p["embedding"][tokens] + p["position"][: len(tokens)]
    cos_sin = rotation(c, torch.arange(len(tokens)), x.dtype)
    for i in range(c.layers):
        qkv = rms_norm(x, p[f"attention_norm.{i}"]) @ p[f"attention_in.{i}"]
        q, k, v = [t.reshape(len(tokens), c.heads, c.head_width).transpose(0, 1) for t in qkv.chunk(3, -1)]
        attended = F.scaled_dot_product_attention(rotate(q, cos_sin)[None], rotate(k, cos_sin)[None], v[None], is_causal=True)[0]
        x = x + attended.transpose(0, 1).reshape(len(tokens), c.width) @ p[f"attention_out.{i}"]
        x = x + F.relu(rms_norm(x, p[f"mlp_norm.{i}"]) @ p[f"mlp_in.{i}"] + p[f"mlp_bias.{i}"]) @ p[f"mlp_out.{i}"]
    return rms_norm(x, p["final_norm"]) @ p["embedding"].T


def logprobs(c, p, prompt, tokens):
    sequence = torch.tensor(prompt + [BEGIN] + tokens)
    rows = torch.log_softmax(plain_logits(c, p, sequence), -1)
    in_prompt = rows[: len(prompt) - 1].gather(1, sequence[1 : len(prompt), None])[:, 0]
    in_completion = rows[len(prompt) : len(prompt) + len(tokens)].gather(1, torch.tensor(tokens)[:, None])[:, 0]
    return in_prompt, in_completion


def total_loss(c, flat, groups, clip):
    """-sum(weight * objective); clip None is cross-entropy."""
    p, total = unflatten(c, flat), 0
    for group in groups:
        for k, item in enumerate(group["completions"]):
            in_prompt, lp = logprobs(c, p, group["prompt"], item["tokens"])
            weights = torch.tensor(item["weights"], dtype=flat.dtype)
            if clip is None:
                total = total - (weights * lp).sum()
                if k == 0:
                    total = total - group["promptWeight"] * in_prompt.sum()
            else:
                ratio = torch.exp(lp - torch.tensor(item["oldLogprobs"], dtype=flat.dtype))
                surrogate = torch.minimum(ratio * item["advantage"], ratio.clamp(1 - clip, 1 + clip) * item["advantage"])
                total = total - (weights * surrogate).sum()
    return total


def case(c, flat, groups, clip):
    results = {}
    for dtype in (torch.float32, torch.float64):
        leaf = flat.to(dtype, copy=True).requires_grad_(True)
        value = total_loss(c, leaf, groups, clip)
        value.backward()
        results[dtype] = (value.item(), leaf.grad)
    loss, gradient = results[torch.float32]
    exact = results[torch.float64][1]
    print("loss", loss, results[torch.float64][0], "float32 against float64 gradient", ((gradient - exact).norm() / exact.norm()).item())
    # the largest entries of every parameter and random others
    chosen, offset, rng = set(), 0, random.Random(5)
    for _, shape in parameter_shapes(c):
        size = math.prod(shape)
        chosen.update((gradient[offset : offset + size].abs().topk(5).indices + offset).tolist())
        offset += size
    while len(chosen) < ENTRIES:
        chosen.add(rng.randrange(len(gradient)))
    indices = sorted(chosen)
    return {
        "groups": groups,
        "clip": clip,
        "loss": loss,
        "gradNorm": gradient.norm().item(),
        "gradient": {"indices": indices, "values": [gradient[i].item() for i in indices]},
    }


def make_groups(c, rng, count, n):
    def tokens(low, high):
        return [rng.randrange(2, c.vocabulary) for _ in range(rng.randint(low, high))]

    return [
        {
            "prompt": tokens(3, c.maxPrompt),
            "promptWeight": 0.004,
            "completions": [
                {"tokens": t, "weights": [round(rng.uniform(0, 0.02), 5) for _ in t], "advantage": round(rng.gauss(0, 1), 4)}
                for t in (tokens(1, c.maxCompletion) for _ in range(n))
            ],
        }
        for _ in range(count)
    ]


def adam_case():
    """Four steps of torch.optim.AdamW behind clip_grad_norm_, on 24 parameters."""
    rng = random.Random(9)
    start = [round(rng.gauss(0, 1), 5) for _ in range(24)]
    gradients = [[round(rng.gauss(0, scale), 5) for _ in start] for scale in (0.05, 1.0, 0.3, 0.01)]
    settings = {"learningRate": 3e-3, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8, "weightDecay": 0.1, "maxGradNorm": 1.0}
    parameter = torch.nn.Parameter(torch.tensor(start))
    optimizer = torch.optim.AdamW([parameter], lr=3e-3, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.1, foreach=False)
    norms, weights = [], []
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        norms.append(torch.nn.utils.clip_grad_norm_([parameter], 1.0).item())
        optimizer.step()
        weights.append(parameter.detach().tolist())
    return {"start": start, "gradients": gradients, "settings": settings, "gradNorms": norms, "weights": weights}


def main():
    c, rng = Config.load(), random.Random(3)
    flat = formula_weights(c)
    grpo = make_groups(c, rng, 3, c.groupSize)
    p = unflatten(c, flat)
    for group in grpo:
        for item in group["completions"]:
            now = logprobs(c, p, group["prompt"], item["tokens"])[1].tolist()
            # ratios well inside and well outside the clip, never at its edge
            item["oldLogprobs"] = [round(x - rng.choice([-0.6, -0.1, 0.0, 0.1, 0.6]), 5) for x in now]
    single = make_groups(c, rng, 4, 1)
    sft_logprobs = [logprobs(c, p, g["prompt"], g["completions"][0]["tokens"])[1].tolist() for g in single]
    fixture = {
        "weights": {"count": len(flat), "sum": flat.double().sum().item(), "first": flat[:4].tolist(), "last": flat[-4:].tolist()},
        "clippedSurrogate": case(c, flat, grpo, 0.2),
        "crossEntropy": {**case(c, flat, single, None), "logprobs": sft_logprobs},
        "adamW": adam_case(),
    }
    path = Path(__file__).parents[2] / "tests" / "trainer" / "embedded" / "parity.json"
    path.write_text(json.dumps(fixture, separators=(",", ":")) + "\n")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
