"""An OpenAI-compatible server of one model on loopback: FOLDER/venv/bin/python serve.py FILE.gguf PORT NAME [SLOTS]

One thread: with two, decoding on a busy machine falls to a tenth. Requests in different slots are answered side by side, and
then not bit for bit as alone; for runs that are to repeat exactly, take one slot.
"""

import sys
import threading

from xllamacpp import CommonParams, Server

path, port, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
slots = int(sys.argv[4]) if len(sys.argv) > 4 else 1
params = CommonParams()
params.model.path = path
params.model_alias = {name}
params.n_ctx = 4096 * slots
params.n_parallel = slots
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.hostnames = ["127.0.0.1"]
params.port = port
params.warmup = False
server = Server(params)
print("listening", server.listening_address, flush=True)
threading.Event().wait()
