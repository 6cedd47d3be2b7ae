#!/usr/bin/env python3
# A Messages API with a scripted model, for driving a real agent offline.
#
#   messages_api.py PORT_FILE SCRIPT LOG [ADDRESS PORT CERTIFICATE KEY]
#
# Listens on a port of 127.0.0.1, or where it is told, by TLS, and writes the port to PORT_FILE. SCRIPT has one step a line, JSON; each request of the
# agent's own conversation (one that offers tools) gets the next step, and the file may grow meanwhile:
#
#   {"text": "…"}                   the model says this, and its turn ends
#   {"bash": "…"}                   it calls the tool Bash
#   {"tool": NAME, "input": {…}}    it calls another tool
#   {"fail": STATUS}                the API answers with this error
#   "after": FILE                   in any step: not before this file is there
#   "last_has": TEXT                in any step: a request whose messages lack this text fails with 400, which ends the run
#   "output_tokens": N              in any step: what it is said to have cost
#   "again": true                   in any step: it is not used up
#
# A SCRIPT that is another file than before is begun anew. LOG gets a line of JSON for each request: the time, the step's number, the
# conversation, and the tools that are offered.
import http.server
import json
import os
import ssl
import sys
import time

PORT_FILE, SCRIPT, LOG = sys.argv[1:4]
LISTEN = (sys.argv[4], int(sys.argv[5])) if len(sys.argv) > 4 else ("127.0.0.1", 0)
MODEL = "claude-scripted-1"
taken, script_is = 0, None


def steps():
    global taken, script_is
    with open(SCRIPT, encoding="utf-8") as script:
        status = os.fstat(script.fileno())
        is_now = (status.st_ino, status.st_ctime_ns)
        if is_now != script_is:
            taken, script_is = 0, is_now
        return [json.loads(line) for line in script if line.strip()]


def note(**what):
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(json.dumps(what) + "\n")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self):
        self.answer_json(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})

    def do_POST(self):
        global taken
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        if not self.path.startswith("/v1/messages"):
            return self.answer_json(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})
        if "count_tokens" in self.path:
            return self.answer_json(200, {"input_tokens": 100})
        if not body.get("tools"):
            return self.answer_model({"text": "A title"})
        all_steps = steps()
        number = taken
        step = all_steps[number] if number < len(all_steps) else {"text": "The script has no more steps."}
        messages = body.get("messages", [])
        said = json.dumps(messages, ensure_ascii=False)
        note(at=time.time_ns(), step=number, said=said, tools=[tool.get("name") for tool in body["tools"]],
             key=self.headers.get("x-api-key") or self.headers.get("authorization"))
        if "after" in step:
            while not os.path.exists(step["after"]):
                time.sleep(0.02)
        if step.get("last_has") and json.dumps(step["last_has"], ensure_ascii=False)[1:-1] not in said:
            return self.answer_json(400, {"type": "error", "error": {"type": "invalid_request_error",
                                                                     "message": "not said: " + step["last_has"]}})
        if "fail" in step:
            if not step.get("again"):
                taken = number + 1
            return self.answer_json(step["fail"], {"type": "error", "error": {"type": "api_error", "message": "scripted failure"}})
        if not step.get("again"):
            taken = number + 1
        self.answer_model(step)

    def answer_json(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer_model(self, step):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        usage = {"input_tokens": 120, "output_tokens": 1, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 10}
        self.event("message_start", message={"id": "msg_%d" % taken, "type": "message", "role": "assistant",
                                             "model": MODEL, "content": [], "stop_reason": None,
                                             "stop_sequence": None, "usage": usage})
        if "text" in step:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": step["text"]}
            reason = "end_turn"
        else:
            name = "Bash" if "bash" in step else step["tool"]
            given = {"command": step["bash"], "description": "Scripted"} if "bash" in step else step.get("input", {})
            block = {"type": "tool_use", "id": "toolu_%d" % taken, "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
            reason = "tool_use"
        self.event("content_block_start", index=0, content_block=block)
        self.event("content_block_delta", index=0, delta=delta)
        self.event("content_block_stop", index=0)
        self.event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": step.get("output_tokens", 40)})
        self.event("message_stop")
        self.close_connection = True

    def event(self, kind, **more):
        self.wfile.write(("event: %s\ndata: %s\n\n" % (kind, json.dumps({"type": kind, **more}))).encode())
        self.wfile.flush()


server = http.server.ThreadingHTTPServer(LISTEN, Handler)
server.daemon_threads = True
if len(sys.argv) > 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[6:8])
    # The handshake is made by the connection's own thread.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(PORT_FILE + ".new", "w", encoding="ascii") as out:
    out.write(str(server.server_address[1]))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
