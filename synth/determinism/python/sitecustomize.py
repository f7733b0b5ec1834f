"""
Makes a Python program repeat itself. Python imports this at its start, where it lies on PYTHONPATH; it does nothing
unless ROOTSTEP_PRELOAD is set.

Only what differs from run to run is changed: wall clocks stand still (by time-machine, at C level: a patch in Python
breaks pandas and pydantic), ids and random numbers are seeded, temporary names are counted. What measures time goes on,
so sleeps, timeouts and asyncio work.
"""
import sys


def _chain():
    """Python imports one sitecustomize only: run the one that this hides (a virtual environment's, the distribution's)."""
    import os
    from importlib.machinery import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    spec.loader.exec_module(module_from_spec(spec))


def _preload(seed, at_ms):
    import itertools
    import json
    import os
    import random
    import tempfile
    import threading
    import uuid

    # A program that this one starts draws from streams of its own, or both would make the same ids.
    os.environ["ROOTSTEP_PRELOAD"] = json.dumps({"seed": f"{seed}/{' '.join(sys.orig_argv[1:])}", "at": at_ms})

    lock = threading.Lock()
    ids = random.Random(f"{seed} ids")
    ticks = itertools.count()

    def uuid4():
        with lock:
            return uuid.UUID(int=ids.getrandbits(128), version=4)

    node = ids.getrandbits(48) | (1 << 40)  # the multicast bit: not a real machine's address
    epoch = 0x01B21DD213814000  # 1582 to 1970, in units of 100 ns

    def uuid1(node=node, clock_seq=None):
        with lock:
            moment = epoch + at_ms * 10_000 + next(ticks)
            sequence = ids.getrandbits(14) if clock_seq is None else clock_seq
        fields = (
            moment & 0xFFFFFFFF,
            (moment >> 32) & 0xFFFF,
            (moment >> 48) & 0x0FFF,
            (sequence >> 8) & 0x3F,
            sequence & 0xFF,
            node,
        )
        return uuid.UUID(fields=fields, version=1)

    uuid.uuid4 = uuid4
    uuid.uuid1 = uuid1
    random.seed(f"{seed} random")

    class CountedNames:
        """Names of tempfile's form, tmp00000000, tmp00000001, …"""

        _counter = itertools.count()

        def __iter__(self):
            return self

        def __next__(self):
            return f"{next(CountedNames._counter):08d}"

    tempfile._RandomNameSequence = CountedNames
    tempfile._name_sequence = None

    try:
        import time_machine
    except ImportError:
        print("rootstep preload: time-machine is not installed here, the clock goes on", file=sys.stderr)
    else:
        from datetime import datetime, timezone

        moment = datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc)
        time_machine.travel(moment, tick=False).start()


def _start():
    import os

    settings = os.environ.get("ROOTSTEP_PRELOAD")
    if settings:
        import json

        chosen = json.loads(settings)
        _preload(chosen["seed"], chosen["at"])


_chain()
_start()
