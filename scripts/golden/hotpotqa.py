#!/usr/bin/env python3
"""Golden values for tests/synth/tasks/hotpotqa.test.ts: the answer part of HotpotQA's hotpot_evaluate_v1.py, written down
again in Python, on answers of several kinds to the shipped questions.

    python3 scripts/golden/hotpotqa.py data/hotpotqa/dev-distractor-100.jsonl > tests/synth/tasks/golden/hotpotqa.json
"""
import json
import re
import string
import sys
from collections import Counter


def normalized(text):
    text = "".join(one for one in text.lower() if one not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def scores(prediction, truth):
    p, t = normalized(prediction), normalized(truth)
    match = p == t
    if (p in ("yes", "no", "noanswer") or t in ("yes", "no", "noanswer")) and not match:
        return match, 0.0
    same = sum((Counter(p.split()) & Counter(t.split())).values())
    if same == 0:
        return match, 0.0
    precision, recall = same / len(p.split()), same / len(t.split())
    return match, 2 * precision * recall / (precision + recall)


def answers(record):
    truth, titles = record["answer"], [title for title, _ in record["context"]]
    words = truth.split()
    yield truth
    yield f"The {truth.upper()}."
    yield " ".join(words[: max(1, len(words) // 2)])
    yield f"{truth}, {titles[0]}"
    yield titles[1]
    yield "yes"
    yield "a an the"
    yield ""


cases = []
for line in open(sys.argv[1]):
    record = json.loads(line)
    cases += [[one, record["answer"], *scores(one, record["answer"])] for one in answers(record)]
cases += [[a, b, *scores(a, b)] for a, b in [
    ("\u00f1a the b", "\u00f1a b"), ("\u00f1a", "\u00f1"), ("caf\u00e9 a l'heure", "caf\u00e9 lheure"), ("a\u0301 an", "a\u0301"), ("no.", "No"), ("noanswer", "no answer"),
    ("x x y", "x y y"), ("\u201cquoted\u201d", "quoted"), ("a_the_b", "atheb"), ("1,000", "1000"),
]]
print(json.dumps({"cases": cases, "em": sum(c[2] for c in cases), "f1": sum(c[3] for c in cases)}, ensure_ascii=True, separators=(",", ":")))
