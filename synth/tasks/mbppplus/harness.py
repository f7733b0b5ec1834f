"""Runs in the sandbox: calls a candidate's function on each test's arguments and writes what it gave, one JSON line each.
The expected results are not here; they are compared outside, so a candidate can only pass by computing them."""
import contextlib
import io
import json
import os
import sys

sys.path.insert(0, "/program" if os.path.isdir("/program") else os.path.dirname(os.path.abspath(__file__)))
from values import decode, encode  # noqa: E402


def main():
    folder = sys.path[0]
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    with open(os.path.join(folder, "candidate.txt")) as file:
        source = file.read()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the candidate may print; nobody reads it

    def say(record):
        answers.write(json.dumps(record) + "\n")
        answers.flush()

    try:
        namespace = {"__name__": "candidate"}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, "candidate.py", "exec"), namespace)
        function = namespace[job["entryPoint"]]
    except BaseException as error:
        say({"fault": describe(error)})
        return
    for arguments in job["arguments"]:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                result = function(*decode(arguments))
            say({"result": encode(result)})
        except BaseException as error:
            say({"error": describe(error)})


def describe(error):
    if isinstance(error, KeyError) and type(error) is KeyError:
        return "KeyError: " + ascii(error.args[0])[:200] if error.args else "KeyError"
    try:
        return (type(error).__name__ + ": " + str(error))[:300]
    except BaseException:
        return type(error).__name__


main()
