#!/usr/bin/env python3
"""Makes data/mbppplus/problems.jsonl.gz from EvalPlus's MbppPlus.jsonl.gz (standard library only):

    python3 scripts/data/mbppplus.py MbppPlus.jsonl.gz data/mbppplus/problems.jsonl.gz

Each problem keeps its text, its reference solution and its tests as (arguments, expected result). Expected results are what
the reference solution gives here, as in EvalPlus. JSON has no tuples and sets: `DESERIALIZE` says where EvalPlus
(evalplus/data/mbpp.py, Apache-2.0) puts them back. To stay light, a problem keeps all base tests and the first plus tests
that fit into PLUS_BYTES of JSON; what was left out is counted in `plusLeftOut`.
"""
import contextlib
import copy
import gzip
import io
import json
import signal
import sys

sys.path.insert(0, __file__.rsplit("/", 3)[0] + "/synth/tasks/mbppplus")
from values import encode  # noqa: E402  the harness's own encoding

PLUS_BYTES = 6_000
# A plus test on which the reference solution takes longer is left out too: the one thing here that depends on the machine.
SLOW_SECONDS = 0.1

TUPLES = {2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809}
LISTS_OF_TUPLES = {63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780}
FIRST_LIST_OF_TUPLES = {75, 413, 444, 753}
SECOND_TUPLE = {106, 750}

# evalplus/eval/_special_oracle.py
SET_EQUALITY = {
    "similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum",
    "intersection_array", "find_dissimilar", "Diff",
}
NOT_NONE = {"check_str", "text_match_three", "text_starta_endb"}
# Their oracle accepts more than one reading of the problem; rootstep leaves them out.
AMBIGUOUS = {"are_equivalent", "sum_div", "surface_Area", "digit_distance_nums"}


def deserialize(number, inputs):
    if number in TUPLES:
        return [[tuple(one) for one in args] for args in inputs]
    if number in LISTS_OF_TUPLES:
        return [[[tuple(one) for one in many] for many in args] for args in inputs]
    if number in FIRST_LIST_OF_TUPLES:
        return [[[tuple(one) for one in args[0]], args[1]] for args in inputs]
    if number in SECOND_TUPLE:
        return [[args[0], tuple(args[1])] for args in inputs]
    if number == 115:
        return [[[set(one) if isinstance(one, list) and len(one) else {} for one in args[0]]] for args in inputs]
    if number == 124:
        return [[float(args[0]), complex(args[1])] for args in inputs]
    if number in {250, 405, 446, 617, 720, 763, 808}:
        return [[tuple(args[0]), args[1]] for args in inputs]
    if number in {259, 401, 445}:
        nested = [[[tuple(one) for one in many] for many in args] for args in inputs]
        return [[tuple(one) for one in args] for args in nested]
    if number == 278:
        return [[tuple(tuple(one) if isinstance(one, list) else one for one in args[0])] for args in inputs]
    if number == 307:
        return [[tuple(args[0]), args[1], args[2]] for args in inputs]
    if number == 722:
        return [[{key: tuple(value) for key, value in args[0].items()}, *args[1:]] for args in inputs]
    if number == 252:
        return [[complex(args[0])] for args in inputs]
    if number in {580, 615, 791}:
        def tupled(value):
            return tuple(tupled(one) for one in value) if isinstance(value, list) else value
        return [[tupled(one) for one in args] for args in inputs]
    return inputs


def tests_of(problem, inputs, namespace, slow_seconds):
    function = namespace[problem["entry_point"]]
    for args in deserialize(int(problem["task_id"].split("/")[1]), inputs):
        shown = encode(list(args))
        signal.setitimer(signal.ITIMER_REAL, slow_seconds)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                result = function(*copy.deepcopy(list(args)))
        except TimeoutError:
            yield None
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if problem["entry_point"] in NOT_NONE and not isinstance(result, bool):
            result = result is not None
        yield shown, encode(result)


def converted(problem):
    namespace = {}
    exec(problem["canonical_solution"], namespace)
    base = [list(test) for test in tests_of(problem, problem["base_input"], namespace, 60)]
    plus, size = [], 0
    for test in tests_of(problem, problem["plus_input"], namespace, SLOW_SECONDS):
        if test is None:
            continue
        size += len(json.dumps(test))
        if size > PLUS_BYTES:
            break
        plus.append(list(test))
    name = problem["entry_point"]
    return {
        "id": problem["task_id"],
        "prompt": problem["prompt"].strip().strip('"').strip(),
        "entryPoint": name,
        "solution": problem["canonical_solution"].strip(),
        "atol": problem["atol"],
        "compare": "set" if name in SET_EQUALITY else "not-none" if name in NOT_NONE else "value",
        "base": base,
        "plus": plus,
        "plusLeftOut": len(problem["plus_input"]) - len(plus),
    }


def too_slow(*_):
    raise TimeoutError


def main(source, target):
    signal.signal(signal.SIGALRM, too_slow)
    kept, dropped = [], []
    with gzip.open(source, "rt") as lines:
        for line in lines:
            problem = json.loads(line)
            if problem["entry_point"] in AMBIGUOUS:
                dropped.append(problem["task_id"] + " (ambiguous)")
                continue
            print(problem["task_id"], file=sys.stderr)
            record = converted(problem)
            if '"other"' in json.dumps([record["base"], record["plus"]]):
                dropped.append(problem["task_id"] + " (results without a JSON form)")
                continue
            kept.append(record)
    with open(target, "wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=9, mtime=0) as out:
        for record in kept:
            out.write((json.dumps(record, separators=(",", ":"), ensure_ascii=True) + "\n").encode())
    plus = sum(len(record["plus"]) for record in kept)
    left = sum(record["plusLeftOut"] for record in kept)
    print(f"{len(kept)} problems, {sum(len(r['base']) for r in kept)} base tests, {plus} plus tests, {left} left out; not used: {dropped}")


main(*sys.argv[1:])
