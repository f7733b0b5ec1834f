"""What rootstep tells a system's program, and how the program answers. On PYTHONPATH while rootstep runs a system."""
import json
import os
import re
from pathlib import Path
from urllib.parse import quote

_PROMPTS = Path(__file__).parent / "prompts"


def task():
    """The task: a dict with `set`, `id` and `text`."""
    return json.loads(os.environ["ROOTSTEP_TASK"])


def problem():
    """The task as the team is given it."""
    return f"Problem: {task()['text'].strip()}\n\nSolve it one calculation at a time."


def instructions(role):
    """The system prompt of planner, solver or verifier."""
    return (_PROMPTS / f"{role}.md").read_text(encoding="utf-8").strip()


def model():
    """Name of the model to ask for."""
    return os.environ["ROOTSTEP_MODEL"]


def base_url(agent):
    """The agent's own base URL: its calls are told apart by it."""
    return os.environ["OPENAI_BASE_URL"].removesuffix("/v1") + f"/a/{quote(agent, safe='')}/v1"


def api_key():
    return os.environ["OPENAI_API_KEY"]


def answer(text):
    """Gives the team's answer: its last number, or the text where it has none. The last thing a program prints."""
    numbers = re.findall(r"-?\d[\d,]*(?:\.\d+)?", text or "")
    print(json.dumps({"answer": numbers[-1].replace(",", "") if numbers else text}), flush=True)
