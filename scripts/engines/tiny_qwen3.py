"""Makes a tiny random Qwen3 with its tokenizer, the same bytes for the same seed: python tiny_qwen3.py FOLDER [SEED].

2 layers, hidden 64, 4 heads over 2 key-value heads of size 32, vocabulary 384 (256 bytes and special tokens), weights
drawn with standard deviation .1, embeddings untied (tied ones go silently wrong when vLLM reloads weights).
Needs numpy, safetensors and tokenizers, which the virtual environments of vLLM and SkyRL both have.
"""

import json
import pathlib
import sys

import numpy
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCABULARY = 64, 2, 4, 2, 32, 128, 384
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<answer>", "</answer>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def weights(random):
    def drawn(*shape):
        return random.normal(0.0, 0.1, shape).astype(numpy.float32)

    def ones(size):
        return numpy.ones(size, numpy.float32)

    tensors = {"model.embed_tokens.weight": drawn(VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        tensors |= {
            f"{at}.input_layernorm.weight": ones(HIDDEN),
            f"{at}.self_attn.q_proj.weight": drawn(HEADS * HEAD_DIM, HIDDEN),
            f"{at}.self_attn.k_proj.weight": drawn(KV_HEADS * HEAD_DIM, HIDDEN),
            f"{at}.self_attn.v_proj.weight": drawn(KV_HEADS * HEAD_DIM, HIDDEN),
            f"{at}.self_attn.o_proj.weight": drawn(HIDDEN, HEADS * HEAD_DIM),
            f"{at}.self_attn.q_norm.weight": ones(HEAD_DIM),
            f"{at}.self_attn.k_norm.weight": ones(HEAD_DIM),
            f"{at}.post_attention_layernorm.weight": ones(HIDDEN),
            f"{at}.mlp.gate_proj.weight": drawn(MLP, HIDDEN),
            f"{at}.mlp.up_proj.weight": drawn(MLP, HIDDEN),
            f"{at}.mlp.down_proj.weight": drawn(HIDDEN, MLP),
        }
    return tensors | {"model.norm.weight": ones(HIDDEN), "lm_head.weight": drawn(VOCABULARY, HIDDEN)}


def config():
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": 1024,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": 258,
        "pad_token_id": 256,
        "torch_dtype": "float32",
    }


def tokenizer():
    """Bytes 0–255 as tokens, without merges; special tokens from 256."""
    alphabet = byte_alphabet()
    made = Tokenizer(models.BPE(vocab={char: byte for byte, char in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIAL[:3]])
    made.add_tokens([AddedToken(text, normalized=False) for text in SPECIAL[3:]])
    return made


def byte_alphabet():
    """The printable stand-ins that byte-level tokenizers use for the 256 bytes (GPT-2), by byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    chars = {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [chars[byte] for byte in range(256)]


def main(folder, seed):
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights(numpy.random.default_rng(seed)), folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer().save(str(folder / "tokenizer.json"))
    files = {
        "config.json": config(),
        "generation_config.json": {"eos_token_id": 258, "pad_token_id": 256},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "model_max_length": 1024,
            "chat_template": CHAT_TEMPLATE,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
