"""Asks twice with Python's own urllib, once streamed; its prompts carry a temporary path and the time, as agents' do."""
import json
import os
import tempfile
import time
import urllib.request


def ask(content, stream):
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": content}]}).encode()
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=body,
        headers={"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request) as response:
        text = response.read().decode()
    if not stream:
        return json.loads(text)["choices"][0]["message"]["content"]
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    return "".join(json.loads(line)["choices"][0]["delta"].get("content") or "" for line in lines)


folder = tempfile.mkdtemp()
first = ask(f"I work in {folder} since {time.time()}. Where?", False)
second = ask(f"You said: {first}", True)
print(json.dumps({"answer": str(folder in second), "cwd": os.getcwd(), "home": os.environ["HOME"]}))
