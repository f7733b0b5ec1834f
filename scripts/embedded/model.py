"""The embedded policy: a tiny causal transformer as pure functions of ONE flat parameter vector.

One flat vector in and one flat gradient out means that TypeScript holds a single Float32Array and runs a single Adam.
Architecture: RMSNorm, rotary plus learned absolute positions, ReLU MLP, tied output head.

Dimensions in names: P prompts, T prompt positions (right-padded), n completions per prompt, G completion positions,
H heads, D head width, L layers, V vocabulary.

The n completions of a group share their prompt inside the training graph, so its keys and values are computed once.
Written for a clean ONNX export of the backward pass: one-hot products in place of gather (whose gradient is a scatter),
split in place of slicing, additive masks in place of Where on booleans (onnxruntime's CPU provider lacks that kernel).
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch

MASKED = -1e9


@dataclass(frozen=True)
class Config:
    vocabulary: int
    width: int
    heads: int
    layers: int
    hidden: int
    maxPrompt: int
    maxCompletion: int
    groupSize: int

    @property
    def head_width(self):
        return self.width // self.heads

    @property
    def positions(self):
        return self.maxPrompt + self.maxCompletion

    @staticmethod
    def load(path=Path(__file__).with_name("config.json")):
        return Config(**json.loads(Path(path).read_text()))


def parameter_shapes(c):
    """Names and shapes of the parameters, in the order in which they lie in the flat vector."""
    shapes = [("embedding", (c.vocabulary, c.width)), ("position", (c.positions, c.width))]
    for i in range(c.layers):
        shapes += [
            (f"attention_norm.{i}", (c.width,)),
            (f"attention_in.{i}", (c.width, 3 * c.width)),
            (f"attention_out.{i}", (c.width, c.width)),
            (f"mlp_norm.{i}", (c.width,)),
            (f"mlp_in.{i}", (c.width, c.hidden)),
            (f"mlp_bias.{i}", (c.hidden,)),
            (f"mlp_out.{i}", (c.hidden, c.width)),
        ]
    shapes.append(("final_norm", (c.width,)))
    return shapes


def parameter_count(c):
    return sum(math.prod(shape) for _, shape in parameter_shapes(c))


def unflatten(c, flat):
    shapes = parameter_shapes(c)
    parts = torch.split(flat, [math.prod(shape) for _, shape in shapes])
    return {name: part.view(shape) for (name, shape), part in zip(shapes, parts)}


def one_hot(ids, size, dtype):
    return (ids.unsqueeze(-1) == torch.arange(size, dtype=ids.dtype)).to(dtype)


def rms_norm(x, gain):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * gain


def rotation(c, position, dtype):
    """cos and sin of the rotary angles, [..., S, D/2]."""
    half = c.head_width // 2
    frequency = torch.tensor([1.0 / (1000.0 ** (i / half)) for i in range(half)], dtype=torch.float32)
    angle = position.to(torch.float32).unsqueeze(-1) * frequency
    return torch.cos(angle).to(dtype), torch.sin(angle).to(dtype)


def rotate(x, cos_sin):
    cos, sin = cos_sin
    a, b = torch.split(x, x.shape[-1] // 2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def embed(c, p, token, position):
    dtype = p["embedding"].dtype
    return one_hot(token, c.vocabulary, dtype) @ p["embedding"] + one_hot(position, c.positions, dtype) @ p["position"]


def attention_inputs(c, p, i, x, cos_sin):
    """x [P,S,width] -> q, k, v [P,H,S,D]; q is scaled."""
    P, S, _ = x.shape
    y = rms_norm(x, p[f"attention_norm.{i}"]) @ p[f"attention_in.{i}"]
    q, k, v = [t.reshape(P, S, c.heads, c.head_width).transpose(1, 2) for t in torch.split(y, c.width, -1)]
    return rotate(q, cos_sin) * (1.0 / math.sqrt(c.head_width)), rotate(k, cos_sin), v


def block_output(c, p, i, x, attended):
    """Adds the attention output [P,H,S,D] and the MLP to the residual stream x [P,S,width]."""
    P, S, _ = x.shape
    x = x + attended.transpose(1, 2).reshape(P, S, c.width) @ p[f"attention_out.{i}"]
    hidden = torch.relu(rms_norm(x, p[f"mlp_norm.{i}"]) @ p[f"mlp_in.{i}"] + p[f"mlp_bias.{i}"])
    return x + hidden @ p[f"mlp_out.{i}"]


def head(p, x):
    return rms_norm(x, p["final_norm"]) @ p["embedding"].t()


def prompt_mask(prompt_length, T, dtype):
    """[P] -> [P,1,T,T]: causal, padded keys hidden."""
    j = torch.arange(T, dtype=prompt_length.dtype)
    visible = (j[None, :] <= j[:, None]).unsqueeze(0) & (j < prompt_length.unsqueeze(-1)).unsqueeze(1)
    return torch.where(visible, 0.0, MASKED).to(dtype).unsqueeze(1)


def key_mask(prompt_length, T, dtype):
    """[P] -> [P,1,1,T]: padded prompt keys hidden from completions."""
    j = torch.arange(T, dtype=prompt_length.dtype)
    return torch.where(j < prompt_length.unsqueeze(-1), 0.0, MASKED).to(dtype)[:, None, None, :]


def forward(c, p, prompt, prompt_length, completion):
    """prompt [P,T], prompt_length [P], completion [P,n,G] -> logits [P, T+n*G, V]."""
    P, T = prompt.shape
    _, n, G = completion.shape
    D, dtype = c.head_width, p["embedding"].dtype
    prompt_position = torch.arange(T, dtype=prompt.dtype).unsqueeze(0).expand(P, T)
    offsets = torch.arange(G, dtype=prompt.dtype)[None, None, :]
    completion_position = (prompt_length[:, None, None] + offsets).expand(P, n, G).reshape(P, n * G)
    position = torch.cat([prompt_position, completion_position], 1)
    cos_sin = tuple(t.unsqueeze(1) for t in rotation(c, position, dtype))
    causal, shared = prompt_mask(prompt_length, T, dtype), key_mask(prompt_length, T, dtype)
    g = torch.arange(G)
    own = torch.where(g[None, :] <= g[:, None], 0.0, MASKED).to(dtype)
    x = embed(c, p, torch.cat([prompt, completion.reshape(P, n * G)], 1), position)
    for i in range(c.layers):
        q, k, v = attention_inputs(c, p, i, x, cos_sin)
        q_prompt, q_completion = torch.split(q, [T, n * G], 2)
        k_prompt, k_completion = torch.split(k, [T, n * G], 2)
        v_prompt, v_completion = torch.split(v, [T, n * G], 2)
        out_prompt = torch.softmax(q_prompt @ k_prompt.transpose(-1, -2) + causal, -1) @ v_prompt
        to_prompt = q_completion @ k_prompt.transpose(-1, -2) + shared
        q5, k5, v5 = [t.reshape(P, c.heads, n, G, D) for t in (q_completion, k_completion, v_completion)]
        to_own = (q5 @ k5.transpose(-1, -2) + own).reshape(P, c.heads, n * G, G)
        a_prompt, a_own = torch.split(torch.softmax(torch.cat([to_prompt, to_own], -1), -1), [T, G], -1)
        out_own = (a_own.reshape(P, c.heads, n, G, G) @ v5).reshape(P, c.heads, n * G, D)
        x = block_output(c, p, i, x, torch.cat([out_prompt, a_prompt @ v_prompt + out_own], 2))
    return head(p, x)


def loss(c, p, prompt, prompt_length, completion, target, weight, advantage, old_logprob, settings):
    """-sum(weight * objective) and the log-probabilities of `target`, both over [P, T+n*G].

    settings = [cross_entropy, clip_low, clip_high]; cross_entropy 1 takes the log-probability as objective, 0 the
    clipped surrogate min(r*A, clip(r, 1-clip_low, 1+clip_high)*A) of GRPO without KL. The clip is written with a mask: the same
    value and gradient, without min's tie between equal arguments.
    """
    log_softmax = torch.log_softmax(forward(c, p, prompt, prompt_length, completion), -1)
    logprob = (log_softmax * one_hot(target, c.vocabulary, log_softmax.dtype)).sum(-1)
    cross_entropy, low, high = [t.squeeze(0) for t in torch.split(settings, 1)]
    ratio = torch.exp((logprob - old_logprob) * (1 - cross_entropy))
    clipped = ((advantage > 0) & (ratio > 1 + high)) | ((advantage < 0) & (ratio < 1 - low))
    bounded = torch.minimum(torch.maximum(ratio.detach(), 1 - low), 1 + high)
    surrogate = torch.where(clipped, bounded * advantage, ratio * advantage)
    objective = cross_entropy * logprob + (1 - cross_entropy) * surrogate
    return -(weight * objective).sum(), logprob.detach()


def train_function(c):
    """(flat, batch…) -> loss, flat gradient, log-probabilities of the targets."""
    names = [name for name, _ in parameter_shapes(c)]

    def train(flat, prompt, prompt_length, completion, target, weight, advantage, old_logprob, settings):
        p = unflatten(c, flat)

        def objective(*tensors):
            value, logprob = loss(
                c, dict(zip(names, tensors)),
                prompt, prompt_length, completion, target, weight, advantage, old_logprob, settings,
            )
            return value, (value, logprob)

        gradient = torch.func.grad(objective, argnums=tuple(range(len(names))), has_aux=True)
        parts, (value, logprob) = gradient(*[p[name] for name in names])
        return value, torch.cat([t.reshape(-1) for t in parts]), logprob

    return train


def prefill_function(c):
    """(flat, prompt [P,T], prompt_length [P]) -> keys and values of the prompt, each [L,P,H,T,D]."""

    def prefill(flat, prompt, prompt_length):
        p = unflatten(c, flat)
        P, T = prompt.shape
        position = torch.arange(T, dtype=prompt.dtype).unsqueeze(0).expand(P, T)
        cos_sin = tuple(t.unsqueeze(1) for t in rotation(c, position, flat.dtype))
        causal = prompt_mask(prompt_length, T, flat.dtype)
        x = embed(c, p, prompt, position)
        keys, values = [], []
        for i in range(c.layers):
            q, k, v = attention_inputs(c, p, i, x, cos_sin)
            keys.append(k)
            values.append(v)
            if i < c.layers - 1:
                x = block_output(c, p, i, x, torch.softmax(q @ k.transpose(-1, -2) + causal, -1) @ v)
        return torch.stack(keys), torch.stack(values)

    return prefill


def decode_function(c):
    """One token for each of P x n rows.

    prompt_keys/values [L,P,H,T,D] come from prefill; own_keys/values [L,P,H,n,G,D] hold positions < step and are
    written by the caller from new_keys/values [L,P,H,n,D]. -> logits [P,n,V], new_keys, new_values
    """

    def decode(flat, token, step, prompt_length, prompt_keys, prompt_values, own_keys, own_values):
        p = unflatten(c, flat)
        P, n = token.shape
        T, G = prompt_keys.shape[3], own_keys.shape[4]
        position = (prompt_length[:, None] + step).expand(P, n)
        cos_sin = tuple(t.unsqueeze(1) for t in rotation(c, position, flat.dtype))
        shared = key_mask(prompt_length, T, flat.dtype)
        own = torch.where(torch.arange(G, dtype=step.dtype) < step, 0.0, MASKED)
        x = embed(c, p, token, position)
        new_keys, new_values = [], []
        for i in range(c.layers):
            q, k, v = attention_inputs(c, p, i, x, cos_sin)
            new_keys.append(k)
            new_values.append(v)
            to_prompt = q @ prompt_keys[i].transpose(-1, -2) + shared
            to_own = (own_keys[i] @ q.unsqueeze(-1)).squeeze(-1) + own
            to_self = (q * k).sum(-1, keepdim=True)
            scores = torch.softmax(torch.cat([to_prompt, to_own, to_self], -1), -1)
            a_prompt, a_own, a_self = torch.split(scores, [T, G, 1], -1)
            own_out = (a_own.unsqueeze(-2) @ own_values[i]).squeeze(-2)
            x = block_output(c, p, i, x, a_prompt @ prompt_values[i] + own_out + a_self * v)
        return head(p, x), torch.stack(new_keys), torch.stack(new_values)

    return decode
