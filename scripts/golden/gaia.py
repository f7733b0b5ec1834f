#!/usr/bin/env python3
"""Golden values for tests/synth/tasks/gaia.test.ts: GAIA's question_scorer written down again in Python.

    python3 scripts/golden/gaia.py > tests/synth/tasks/golden/gaia.json
"""
import json
import re
import string


def is_float(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


def number(text):
    for sign in "$%,":
        text = text.replace(sign, "")
    try:
        return float(text)
    except ValueError:
        return float("inf")


def text_of(text, punctuation):
    text = re.sub(r"\s", "", text).lower()
    return text.translate(str.maketrans("", "", string.punctuation)) if punctuation else text


def score(answer, truth):
    if is_float(truth):
        return number(answer) == float(truth)
    if "," in truth or ";" in truth:
        wanted, said = re.split("[,;]", truth), re.split("[,;]", answer)
        if len(wanted) != len(said):
            return False
        return all(
            number(one) == float(other) if is_float(other) else text_of(one, False) == text_of(other, False)
            for one, other in zip(said, wanted)
        )
    return text_of(answer, True) == text_of(truth, True)


TRUTHS = ["17", "89706.00", "-3", "1e3", "0.5", "1_000", "right", "Sea gull", "St. Petersburg", "b, e", "3.1.3.1; 1.11.1.7",
          "132, 133, 134, 197, 245", "Wojciech", "1:41.614", "inf", "nan", ".", "100 million", "12,500", "a;b,c", "10 %", " 4 "]
ANSWERS = TRUTHS + ["17.0", "$17", "17%", "seventeen", "89,706.00", "89706", "- 3", "1000", ".5", "+.5", "Right!", "seagull", "SEAGULL",
                    "st petersburg", "b,e", "e, b", "B , E", "b; e", "b, e,", "132,133,134,197,245", "132, 133, 134, 197", "wojciech.", "1:41.614 ",
                    "", "None", "infinity", "Infinity", "-inf", "NaN", "1__0", "0x11", "4", "\u00a04", "12500", "1e", "1.e3"]
print(json.dumps([[a, t, score(a, t)] for t in TRUTHS for a in ANSWERS], separators=(",", ":")))
