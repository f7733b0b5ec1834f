"""Makes a tiny random Qwen3 with its tokenizer, the same bytes for the same seed: python tiny_qwen3.py FOLDER [SEED].

2 layers, hidden 64, 4 heads over 2 key-value heads of size 32, vocabulary 2048 (byte-level BPE, trained on the tracer's
prompt and on GSM8K), weights drawn with standard deviation .1, embeddings untied (tied ones go silently wrong when vLLM
reloads weights). The end token's row is larger, so that answers end at various lengths.
Needs numpy, safetensors and tokenizers, which the virtual environments of vLLM and SkyRL both have.
"""

import json
import pathlib
import sys

import numpy
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCABULARY = 64, 2, 4, 2, 32, 128, 2048
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAGS = ["<think>", "</think>", "<answer>", "</answer>"]
PAD, END = 0, 2
END_SCALE = 5.0
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ["src/methods/tracer/prompt.md", "data/gsm8k/test.jsonl"]
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
    head = drawn(VOCABULARY, HIDDEN)
    head[END] *= END_SCALE
    return tensors | {"model.norm.weight": ones(HIDDEN), "lm_head.weight": head}


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
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": END,
        "pad_token_id": PAD,
        "torch_dtype": "float32",
    }


def tokenizer():
    """Special tokens first, then the 256 bytes, then merges; the reward's tags are tokens of their own."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(TAGS),
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator([(REPOSITORY / path).read_text() for path in CORPUS], trainer)
    made.add_tokens([AddedToken(text, normalized=False) for text in TAGS])
    return made


def main(folder, seed):
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights(numpy.random.default_rng(seed)), folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer().save(str(folder / "tokenizer.json"))
    files = {
        "config.json": config(),
        "generation_config.json": {"eos_token_id": END, "pad_token_id": PAD},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "model_max_length": 2048,
            "chat_template": CHAT_TEMPLATE,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
