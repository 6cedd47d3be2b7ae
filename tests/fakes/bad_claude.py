#!/usr/bin/env python3
# Stands in for Claude Code and behaves as BAD_CASE says: what the real one does rarely, or would never.
import json
import os
import signal
import subprocess
import sys
import time

case = os.environ["BAD_CASE"]
session = "0b5c1d2e-0000-4000-8000-000000000001"
out = sys.stdout.buffer


def tell(**event):
    out.write(json.dumps(event).encode() + b"\n")
    out.flush()


def init(status="connected"):
    tell(type="system", subtype="init", session_id=session, mcp_servers=[{"name": "open_conduit", "status": status}])


def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def acknowledge(message):
    tell(type="user", message=message["message"], uuid=message["uuid"], isReplay=True, session_id=session)


def result(**more):
    tell(**{"subtype": "success", "is_error": False, "result": "done", "num_turns": 1, "total_cost_usd": 0.01,
            "modelUsage": {"m": {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 0,
                                 "cacheCreationInputTokens": 0}},
            "session_id": session, "type": "result", **more})


if case == "other-program":
    print("usage: claude [-v] FILE")
    sys.exit(2)
if case == "old-version":
    print("error: unknown option '--replay-user-messages'", file=sys.stderr)
    sys.exit(1)
if case == "no-interpreter":
    sys.exit(127)
brief = hear()
if case == "silent":
    time.sleep(600)
init()
acknowledge(brief)
if case == "long-lines":
    # Twenty MiB in a line, and the type behind it.
    for _ in range(int(os.environ.get("BAD_TIMES", "2"))):
        out.write(b'{"message": {"content": "' + b"x" * (20 << 20) + b'"}, "session_id": "' + session.encode() + b'", "type": "assistant"}\n')
    result(result="y" * (20 << 20))
elif case == "not-utf8":
    out.write(b'{"type": "assistant", "message": {"content": "\xff\xfe\x80"}}\n\x00\x01\x1b]0;title\x07 no json\n{"type": "assist')
    out.write(b"\n" + b"[" * 100000 + b"\n")
    result()
elif case == "error-in-between":
    out.write(b'{"type": "assistant", "message":')
    out.flush()
    sys.stderr.write("a warning in the midst of a line\n")
    sys.stderr.flush()
    time.sleep(0.3)
    out.write(b' {"content": [{"type": "text", "text": "whole"}]}, "session_id": "x"}\n')
    result()
elif case == "hangs-after-result":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "left-by-" + sys.argv[0]])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    result()
    time.sleep(600)
elif case == "no-result":
    print("it just ends")
    sys.exit(0)
elif case == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif case == "storm":
    for attempt in range(1, 200):
        tell(type="system", subtype="api_retry", attempt=attempt, error_status=529, error="overloaded", session_id=session)
        time.sleep(0.01)
    time.sleep(600)
elif case == "fails":
    result(is_error=True, result="API Error: 500", api_error_status=500)
    sys.exit(1)
elif case == "listens":
    # Takes messages until a file is there, one after the other.
    open("up", "w").close()
    while not os.path.exists("enough"):
        message = hear()
        if message is None:
            break
        if message["type"] == "control_request":
            result(subtype="error_during_execution", is_error=True)
            sys.exit(1)
        with open("heard", "a", encoding="utf-8") as heard:
            heard.write(message["message"]["content"][0]["text"] + "\n")
        acknowledge(message)
    result()
elif case == "deaf":
    open("up", "w").close()
    while not os.path.exists("enough"):
        time.sleep(0.05)
    result()
    sys.stdin.read()
else:
    sys.exit("no such case: " + case)
