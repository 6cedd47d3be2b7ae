#!/usr/bin/env python3
"""slow_terminal.py TYPED COMMAND...: runs a command in a terminal that shows less than the command prints.

Types `yes` at the first prompt, then TYPED (written as Python would; SIGTERM is sent instead of nothing), and says how the
command ended. A terminal behind a slow line is such a one: whoever feeds it always has something to show.
"""
import ast
import os
import pty
import signal
import sys
import time

typed = ast.literal_eval('b"' + sys.argv[1] + '"')
told = False
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])

shown = b""
while b"$ " not in shown:
    shown += os.read(terminal, 1024)
os.write(terminal, b"yes\r")
begun = time.monotonic()
while True:
    try:
        read = os.read(terminal, 4096)
    except OSError:  # Linux says so when nobody has the other end
        read = b""
    if not read:
        break
    if not told and time.monotonic() - begun > 3:
        told = True
        if typed:
            os.write(terminal, typed)
        else:
            os.kill(pid, signal.SIGTERM)
    time.sleep(0.002)
print("it ended with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
