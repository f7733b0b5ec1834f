"""Python values as JSON that keeps their types; values.ts reads and compares them. Only exact built-in types are let
through: an object that overrides __eq__ or __repr__ is ["other", its type's name] and equals nothing."""
import collections
import re

MAX_DEPTH = 50


def encode(value, depth=0):
    kind = type(value)
    if depth > MAX_DEPTH:
        return ["other", "too deep"]
    if value is None:
        return ["none"]
    if kind is bool:
        return ["bool", value]
    if kind is int:
        return ["int", format(value, "x")]  # hexadecimal: no limit on the number of digits
    if kind is float:
        return ["float", repr(value)]
    if kind is complex:
        return ["complex", repr(value.real), repr(value.imag)]
    if kind is str:
        return ["str", value]
    if kind is bytes:
        return ["bytes", value.hex()]
    if kind in (list, tuple, set, frozenset, collections.deque):
        name = "set" if kind is frozenset else kind.__name__
        return [name, [encode(one, depth + 1) for one in value]]
    if kind in (dict, collections.Counter, collections.OrderedDict, collections.defaultdict):
        return ["dict", [[encode(key, depth + 1), encode(one, depth + 1)] for key, one in dict.items(value)]]
    if kind is re.Match:
        return ["match"]
    return ["other", kind.__name__]


def decode(coded):
    kind, *rest = coded
    if kind == "none":
        return None
    if kind == "int":
        return int(rest[0], 16)
    if kind == "float":
        return float(rest[0])
    if kind == "complex":
        return complex(float(rest[0]), float(rest[1]))
    if kind == "bytes":
        return bytes.fromhex(rest[0])
    if kind in ("bool", "str"):
        return rest[0]
    if kind == "dict":
        return {decode(key): decode(one) for key, one in rest[0]}
    return {"list": list, "tuple": tuple, "set": set, "deque": collections.deque}[kind](decode(one) for one in rest[0])
