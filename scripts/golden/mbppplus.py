#!/usr/bin/env python3
"""Golden verdicts for tests/synth/tasks/mbppplus.test.ts: EvalPlus's own comparison (evalplus.eval.unsafe_execute) on changed
solutions of the shipped problems. Run in a sandbox, with `pip install evalplus numpy psutil` (0.3.1 was used):

    python3 scripts/golden/mbppplus.py data/mbppplus/problems.jsonl.gz > tests/synth/tasks/golden/mbppplus.json
"""
import gzip
import json
import random
import re
import sys
import types

sys.path.insert(0, __file__.rsplit("/", 3)[0] + "/synth/tasks/mbppplus")
for name in ("tempdir", "tqdm"):  # what evalplus imports and these functions do not use
    sys.modules.setdefault(name, types.ModuleType(name))
from values import decode  # noqa: E402
from evalplus.eval import untrusted_check  # noqa: E402

CHANGES = [(r" \+ ", " - "), (r" - ", " + "), (r" < ", " <= "), (r" > ", " >= "), (r" == ", " != "), (r"\bmin\(", "max("),
           (r"\bmax\(", "min("), (r"\breturn (.*)", r"return [\1]"), (r"\breturn (.*)", r"return (\1) or None"),
           (r"\breturn (.*)", r"return (\1)\n    # same"), (r"\btuple\(", "list("), (r"\blist\(", "tuple("), (r"\bsorted\(", "list("),
           (r"\breturn (.*)", r"_v = (\1)\n    return _v * 1.0000001 if isinstance(_v, float) else _v"),
           (r"\breturn (.*)", r"_v = (\1)\n    return float(_v) if isinstance(_v, int) else _v"),
           (r"\breturn (.*)", r"_v = (\1)\n    return list(_v) if isinstance(_v, (tuple, set)) else _v")]


def changed(code, draws):
    for pattern, by in draws.sample(CHANGES, len(CHANGES)):
        if "while" in code and pattern.startswith(" "):
            continue
        found = list(re.finditer(pattern, code))
        if found:
            at = draws.choice(found)
            return code[: at.start()] + at.expand(by) + code[at.end():]
    return None


def main(path):
    cases = []
    for number, line in enumerate(gzip.open(path, "rt")):
        if number % 3 != 0:
            continue
        problem = json.loads(line)
        code = changed(problem["solution"], random.Random(number))
        if code is None:
            continue
        tests = problem["base"] + problem["plus"]
        inputs, expected = [decode(args) for args, _ in tests], [decode(result) for _, result in tests]
        verdict, _ = untrusted_check("mbpp", code, inputs, problem["entryPoint"], expected, problem["atol"],
                                     [0.1] * len(tests), fast_check=True)
        cases.append([problem["id"], code, verdict])
    print(json.dumps(cases, separators=(",", ":")))


main(sys.argv[1])
