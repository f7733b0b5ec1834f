"""Writes a tracefork tape with tracefork's own Tape class: the exchanges its proxy would have recorded.

usage: python tracefork_tape.py EXCHANGES.jsonl TAPE   (each line: [request body, response body])
"""

import json
import sys

from tracefork.constants import PROXY_BOUNDARY
from tracefork.tape import Tape

tape = Tape()
tape.boundary = PROXY_BOUNDARY
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        request, response = json.loads(line)
        tape.append_exchange(request.encode("utf-8"), response.encode("utf-8"))
tape.save(sys.argv[2])
