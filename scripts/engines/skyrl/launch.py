"""python launch.py -- ARGS: runs `python -m skyrl.tinker.api ARGS` as a child.

The server reads its parent's command line to find how it was started, wants `--` at position 2 or later there, and gives
what follows to the engine it starts by `uv run`; bin/uv stands in for that uv.
"""

import signal
import subprocess
import sys

assert sys.argv[1] == "--"
server = subprocess.Popen([sys.executable, "-m", "skyrl.tinker.api", *sys.argv[2:]])
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda received, frame: server.send_signal(received))
sys.exit(server.wait())
