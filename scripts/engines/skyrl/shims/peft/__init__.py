"""Stands in for peft.LoraConfig: SkyRL's JAX backend only writes adapter_config.json with it."""

import json
import os


class LoraConfig:
    def __init__(self, base_model_name_or_path=None, r=8, lora_alpha=8):
        self.settings = {
            "peft_type": "LORA",
            "task_type": None,
            "base_model_name_or_path": base_model_name_or_path,
            "r": r,
            "lora_alpha": lora_alpha,
            "target_modules": None,
            "lora_dropout": 0.0,
            "bias": "none",
            "fan_in_fan_out": False,
            "use_rslora": False,
            "use_dora": False,
            "modules_to_save": None,
            "rank_pattern": {},
            "alpha_pattern": {},
            "inference_mode": True,
        }

    def save_pretrained(self, path):
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "adapter_config.json"), "w") as file:
            json.dump(self.settings, file, indent=2, sort_keys=True)
