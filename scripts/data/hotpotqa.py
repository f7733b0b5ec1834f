#!/usr/bin/env python3
"""Makes data/hotpotqa/dev-distractor-100.jsonl: 100 questions of HotpotQA's development set with their ten paragraphs each.

    python3 scripts/data/hotpotqa.py SAMPLE.json dev-simplified.json data/hotpotqa/dev-distractor-100.jsonl

SAMPLE.json: the records of github.com/noahshinn/reflexion at 218cf0e, hotpotqa_runs/data/hotpot-qa-distractor-sample.joblib
(a pickled table; read it in a sandbox), written as a JSON list. dev-simplified.json: questions and answers of the whole
development set, against which every question, answer and type is checked. Records are written in the layout of the official
hotpot_dev_distractor_v1.json, one per line.
"""
import json
import sys

sample, whole, target = sys.argv[1:]
known = {(one["question"], one["answer"], one["type"]) for one in json.load(open(whole))}
with open(target, "w") as out:
    for one in json.load(open(sample)):
        if (one["question"], one["answer"], one["type"]) not in known:
            raise SystemExit(f"not in the development set: {one['id']}")
        record = {
            "_id": one["id"],
            "question": one["question"],
            "answer": one["answer"],
            "type": one["type"],
            "level": one["level"],
            "supporting_facts": [list(pair) for pair in zip(one["supporting_facts"]["title"], one["supporting_facts"]["sent_id"])],
            "context": [list(pair) for pair in zip(one["context"]["title"], one["context"]["sentences"])],
        }
        out.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
