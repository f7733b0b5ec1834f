"""The format-gated reward of a failure tracer, for verl: R = I_format * (lambda * r_step + (1 - lambda) * r_agent).

An output counts only if it is exactly `<think>...</think><answer>agentID | stepID</answer>`. r_step is
exp(-(t - t*)^2 / (2 sigma^2)), r_agent is 1 where the agent is the labelled one. The same program as rootstep's own
reward, checked against the same vectors. LAMBDA and SIGMA can be set by the environment.
"""

import math
import os
import re
import unicodedata

LAMBDA = float(os.environ.get("ROOTSTEP_REWARD_LAMBDA", "0.5"))
SIGMA = float(os.environ.get("ROOTSTEP_REWARD_SIGMA", "1.0"))

ASCII_SPACE = " \t\r\n\f\v"
TAG = re.compile(r"</?(?:think|answer)>")
LINE_BREAK = re.compile("[\r\n\f\v\u0085\u2028\u2029]")
STEP = re.compile(r"(?:0|[1-9][0-9]*)", re.ASCII)
LARGEST_STEP = 2**53 - 1
# What JavaScript calls white space and trims; Python's own set differs.
JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
JS_SPACES = re.compile(f"[{JS_SPACE}]+")
REMARK = re.compile(rf"[{JS_SPACE}]*\([^()]*\)\Z")


def _inside(text, opening, closing):
    if not text.startswith(opening) or not text.endswith(closing) or len(text) < len(opening) + len(closing):
        return None
    body = text[len(opening) : len(text) - len(closing)]
    return None if TAG.search(body) else body


def parse_output(text):
    """(agent, step) of an output that passes the gate, else None."""
    whole = text.strip(ASCII_SPACE)
    found = whole.find("</think>")
    end = (found if found >= 0 else -1) + len("</think>")
    think = _inside(whole[:end], "<think>", "</think>")
    body = _inside(whole[end:].strip(ASCII_SPACE), "<answer>", "</answer>")
    if think is None or body is None:
        return None
    answer = body.strip(ASCII_SPACE)
    if LINE_BREAK.search(answer):
        return None
    split = f" {answer} ".rfind(" | ")
    if split < 0:
        return None
    agent = answer[: max(0, split - 1)].strip(ASCII_SPACE)
    digits = answer[split + 2 :].strip(ASCII_SPACE)
    if agent == "" or not STEP.fullmatch(digits):
        return None
    step = int(digits) if len(digits) <= 16 else LARGEST_STEP + 1
    return None if step > LARGEST_STEP else (agent, step)


def _trim(text):
    return re.sub(rf"\A[{JS_SPACE}]+|[{JS_SPACE}]+\Z", "", text)


def normalize_agent(name):
    """The form in which names are compared: remarks in parentheses, case and runs of white space are folded."""
    current = _trim(name)
    while True:
        shorter = _trim(REMARK.sub("", current))
        if shorter in (current, ""):
            break
        current = shorter
    return _trim(JS_SPACES.sub(" ", unicodedata.normalize("NFKC", current))).lower()


def reward_parts(text, label_agent, label_step, lam=LAMBDA, sigma=SIGMA):
    """The reward and its parts, each in [0, 1]."""
    parsed = parse_output(text)
    if parsed is None:
        return {"total": 0.0, "format": 0, "step": 0.0, "agent": 0}
    agent, step = parsed
    distance = (step - label_step) / sigma
    r_step = math.exp(-(distance * distance) / 2)
    r_agent = int(normalize_agent(agent) == normalize_agent(label_agent))
    return {"total": lam * r_step + (1 - lam) * r_agent, "format": 1, "step": r_step, "agent": r_agent}


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    """verl's custom reward function. ground_truth is "agent | step"; the last separator splits."""
    agent, step = ground_truth.rsplit(" | ", 1)
    parts = reward_parts(solution_str, agent, int(step))
    return {
        "score": parts["total"],
        "format": parts["format"],
        "step_reward": parts["step"],
        "agent_reward": parts["agent"],
    }
