"""Checks tracer_reward.py against the shared vectors: python3 check_reward.py FOLDER_OF_THE_JOB VECTORS."""

import importlib.util
import json
import pathlib
import sys

job, vectors = map(pathlib.Path, sys.argv[1:3])
spec = importlib.util.spec_from_file_location("tracer_reward", job / "tracer_reward.py")
reward = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reward)
shared = json.loads(vectors.read_text())
wrong = []
for vector in shared["vectors"]:
    label = vector["label"]
    found = reward.reward_parts(vector["text"], label["agent"], label["step"], vector["lam"], vector["sigma"])
    for part, expected in vector["reward"].items():
        if abs(found[part] - expected) > shared["tolerance"]:
            wrong.append([vector["name"], part, expected, found[part]])
score = reward.compute_score("rootstep", "<think>x</think><answer>a | b | 3</answer>", "a | b | 4")
print(json.dumps({"vectors": len(shared["vectors"]), "wrong": wrong, "score": score}))
