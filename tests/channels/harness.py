"""What the tests of adapters stand on: the real daemon on a home of its own, a model server that does as it is told, and
the adapters of `librefang-sdk` as they are, against scripted servers of their platforms over real sockets.

A file of this folder has one platform: a class `Platform` (see below), and functions `case_<name>(stage)` for what only it
has. Each platform also runs the cases of `shared.py`. From the environment: AGENTSVC_BIN (the daemon). Its adapters run in
the Python that runs this.
"""

import base64
import contextlib
import http.server
import json
import os
import pathlib
import queue
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request

PATIENCE_S = float(os.environ.get("PATIENCE_S", 60))

#: The platform itself would fetch it.
PICTURE = "https://93.184.216.34/a.png"
RECORDING = "https://93.184.216.34/a.ogg"
#: A picture of one point.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
#: What an agent needs to send pictures.
SENDING = '[capabilities]\ntools = ["channel_send"]\nnetwork = ["93.184.216.34"]\n'


def until(what, probe):
    """Asks `probe` until it gives something; fails naming `what`."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = probe()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"in vain: {what}")


GIVEN_PORTS = set()


def lasting_port():
    """A free port outside the range of those that the system gives out: after a kill it is free for the next start, too."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(11_000, max(lowest, 20_000)), 100):
        if port in GIVEN_PORTS:
            continue
        GIVEN_PORTS.add(port)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def fetch(method, url, body=None, headers=()):
    """A call over HTTP: the status and the body."""
    request = urllib.request.Request(url, data=body, method=method, headers=dict(headers))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE_S) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


class Http:
    """A scripted server. `answer(request)` gives a status and a JSON value or bytes; it may also take the connection over
    and give nothing. `request` has `method`, `path`, `headers`, `body`, `json()`, `connection` and `handler`. With `tls` it
    is a proxy, which answers itself, encrypted, for each host that is asked for."""

    def __init__(self, answer, tls=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_one(self):
                self.method, self.handler = self.command, self
                self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    said = answer(self)
                    if said is None:
                        self.close_connection = True
                        return
                    status, value = said
                    content = value if isinstance(value, bytes) else json.dumps(value).encode()
                    self.send_response(status)
                    is_file = isinstance(value, bytes)
                    self.send_header("content-type", "application/octet-stream" if is_file else "application/json")
                    self.send_header("content-length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    self.close_connection = True

            def json(self):
                return json.loads(self.body)

            def do_CONNECT(self):
                self.send_response(200)
                self.end_headers()
                try:
                    self.connection = tls.wrap_socket(self.connection, server_side=True)
                except OSError:
                    self.close_connection = True
                    return
                self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
                self.close_connection = False

            do_GET = do_POST = do_PUT = do_DELETE = handle_one

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, address):
                if not isinstance(sys.exc_info()[1], OSError):
                    super().handle_error(request, address)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Model:
    """An OpenAI-like server that echoes. While `gate` is closed, it stops in the middle of an answer. At the first request
    it calls the tool `calls`, where there is one: a name and its arguments."""

    calls = None

    def __init__(self):
        #: Of the last request.
        self.messages = []
        self.requests = queue.Queue()
        self.gate = threading.Event()
        self.gate.set()
        self.http = Http(self.answer)

    def answer(self, request):
        body = request.json()
        self.messages = body["messages"]
        text = f"echo: {last_text(self.messages)}"
        self.requests.put(text)
        usage = {"prompt_tokens": 10, "completion_tokens": 10}
        called, self.calls = self.calls, None
        call = called and {"index": 0, "id": "c1", "type": "function",
                           "function": {"name": called[0], "arguments": json.dumps(called[1])}}
        if not body.get("stream"):
            self.gate.wait(PATIENCE_S)
            message = {"role": "assistant", "tool_calls": [call]} if call else {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
            return 200, {"id": "x", "object": "chat.completion", "model": "scripted", "usage": usage, "choices": [choice]}
        handler = request.handler
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        half = len(text) // 2
        deltas = [({"role": "assistant", "content": text[:half]}, None), ({"content": text[half:]}, None), ({}, "stop")]
        if call:
            deltas = [({"role": "assistant", "tool_calls": [call]}, None), ({}, "tool_calls")]
        for delta, finish in deltas:
            if finish is None and not delta.get("role"):
                self.gate.wait(PATIENCE_S)
            event = {"id": "x", "object": "chat.completion.chunk", "model": "scripted",
                     "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            if finish:
                event["usage"] = usage
            handler.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            handler.wfile.flush()
        handler.wfile.write(b"data: [DONE]\n\n")
        return None

    def asked(self, part):
        """Waits until it is asked something with `part`; gives what its answer would be."""
        while part not in (text := self.requests.get(timeout=PATIENCE_S)):
            pass
        return text

    def config(self):
        return (f'[default_model]\nprovider = "openai"\nmodel = "echo-1"\nbase_url = "{self.http.url}/v1"\n'
                'api_key_env = "TEST_MODEL_KEY"\n[prices."openai/echo-1"]\ninput_per_m = 2.5\noutput_per_m = 10.0\n')


def last_text(messages):
    """The text of the newest message of a person."""
    content = [message for message in messages if message["role"] == "user"][-1]["content"]
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content if part.get("type") == "text")


class Daemon:
    """The real binary on a home of its own."""

    def __init__(self, config):
        self.home = tempfile.mkdtemp(prefix="agentsvc-channels-")
        text = f'api_listen = "127.0.0.1:{lasting_port()}"\nrate_limit_per_second = 1000000\n{config}'
        pathlib.Path(self.home, "config.toml").write_text(text)
        self.start()

    def start(self):
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": self.home, "AGENTSVC_HOME": self.home, "TEST_MODEL_KEY": "k"}
        self.log = open(pathlib.Path(self.home, "stderr.txt"), "ab")
        self.process = subprocess.Popen([os.environ["AGENTSVC_BIN"], "start"], env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.log)
        until("the daemon serves its world", self.ready)

    def ready(self):
        assert self.process.poll() is None, f"the daemon ended: {self.stderr()}"
        try:
            known = json.loads(pathlib.Path(self.home, "daemon.json").read_text())
            self.url = f"http://{known['listen']}"
            return known["pid"] == self.process.pid and fetch("GET", f"{self.url}/api/status")[0] == 200
        except (OSError, ValueError, KeyError):
            return False

    def call(self, method, path, body=None):
        """A JSON call: the status and the answer."""
        content = None if body is None else json.dumps(body).encode()
        status, said = fetch(method, self.url + path, content, {"content-type": "application/json"})
        return status, json.loads(said) if said else None

    def get(self, path):
        status, said = self.call("GET", path)
        assert status == 200, (path, status, said)
        return said

    def stderr(self):
        return pathlib.Path(self.home, "stderr.txt").read_text(errors="replace")[-4000:]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Platform:
    """A platform, as its adapter sees it. Texts that were sent are put into `sent` by the scripted server: `(text, more)`,
    where `more` is what came with it (a thread, a token)."""

    name = ""
    #: Keys of the entry beside the usual ones, and of the configuration.
    more = config = ""
    #: Keys of the manifest of the agent.
    manifest = SENDING
    #: It answers each send, and can refuse it.
    refuses = True
    #: A refusal signs it out.
    signs_out = False
    #: Its adapter shows pictures, and files that have no URL.
    shows_pictures = takes_files = False
    #: The arguments of its adapter, where they are not the usual ones.
    args = None

    def __init__(self):
        self.sent = queue.Queue()
        self.log = []
        self.status = 200
        #: While it is closed, a send is taken, and not answered.
        self.gate = threading.Event()
        self.gate.set()

    def env(self):
        """What the adapter needs."""
        raise NotImplementedError

    def entry(self, **more):
        """Its table of the configuration."""
        keys = {"name": self.name, "command": sys.executable, "args": self.args or ["-m", f"librefang.sidecar.adapters.{self.name}"],
                "agent": "scout", "dm_policy": "respond", "group_policy": "all", "restart_initial_backoff_ms": 20,
                "shutdown_grace_secs": 1, **more}
        env = ", ".join(f"{key} = {json.dumps(str(value))}" for key, value in self.env().items())
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        return "\n".join(["[[sidecar_channels]]", *lines, f"env = {{ {env} }}", self.more])

    def listening(self, stage):
        """Waits until the adapter hears what is said."""
        raise NotImplementedError

    def say(self, text):
        """A person says something; gives what must come back with the answer, or nothing."""
        raise NotImplementedError

    def take(self, text, more=None):
        """For the scripted server: a send has come. Gives its status."""
        self.log.append((text, more))
        self.sent.put((text, more))
        self.gate.wait(PATIENCE_S)
        return self.status

    def answer_with(self, part):
        """Waits for a send with `part`."""
        while True:
            text, more = self.sent.get(timeout=PATIENCE_S)
            if part in text:
                return text, more

    def count(self, part):
        return sum(part in text for text, _ in self.log)

    def close(self):
        self.gate.set()


def post(port, body, signature):
    """Brings something to an adapter that listens for it itself: the status. `signature` gives headers for the bytes."""
    content = json.dumps(body).encode()
    headers = {"content-type": "application/json", **signature(content)}
    return fetch("POST", f"http://127.0.0.1:{port}/webhook", content, headers)[0]


def listens(port):
    """Waits until an adapter listens."""
    def probe():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    until("the adapter listens", probe)


class Stage:
    """One daemon with one channel, one model and one platform."""

    def __init__(self, platform):
        self.platform, self.model = platform, Model()
        self.name = platform.name
        self.daemon = Daemon(f"{self.model.config()}{platform.config}{platform.entry()}\n")
        status, said = self.daemon.call("POST", "/api/agents", {"manifest_toml": f'name = "scout"\n{platform.manifest}'})
        assert status in (200, 201), said
        self.agent = said["id"] if "id" in said else said["agent_id"]

    def sends_with_tool(self, **arguments):
        """At the next message the agent sends this, beside its answer."""
        self.model.calls = "channel_send", {"channel": self.name, "message": "", **arguments}

    def write(self, name, content):
        """Puts a file into the agent's workspace."""
        url = f"{self.daemon.url}/api/agents/{self.agent}/files/{name}"
        status, said = fetch("PUT", url, content, {"content-type": "application/octet-stream"})
        assert status in (200, 201), (status, said)

    def row(self):
        return self.daemon.get(f"/api/channels/{self.name}")

    def sends(self):
        """The sends of the channel, as it lists them."""
        return self.daemon.get(f"/api/channels/{self.name}/sends")["sends"]

    def send_with(self, *statuses):
        """Waits for a send that ended so."""
        return until(f"a send ends {statuses}; they are {self.sends()}",
                     lambda: next((send for send in self.sends() if send["status"] in statuses), None))

    def tell(self, text):
        """Says something to the agent without a channel; the answer."""
        status, said = self.daemon.call("POST", f"/api/agents/{self.agent}/message", {"message": text})
        assert status == 200, (status, said)
        return said

    def adapters(self):
        """The processes of adapters of this daemon, and of one that was killed: by their directory."""
        found, wanted = [], f"LIBREFANG_HOME={self.daemon.home}/".encode()
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"librefang.sidecar.adapters" in command and wanted in environment and b"--describe" not in command:
                found.append(int(entry.name))
        return found

    def kill_adapter(self):
        """Ends the adapter as a crash would, and waits for the next one."""
        old = until("the adapter runs", self.adapters)
        for pid in old:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until("another adapter runs", lambda: [pid for pid in self.adapters() if pid not in old])

    def close(self):
        self.platform.close()
        self.model.gate.set()
        self.daemon.kill()
        shutil.rmtree(self.daemon.home, ignore_errors=True)


def run(platform, name, case):
    """Runs a case of a platform, on a daemon of its own: what there is to say of it, and whether it passed."""
    stage = None
    try:
        stage = Stage(platform())
        case(stage)
    except Exception:
        said = [traceback.format_exc()]
        if stage:
            with contextlib.suppress(OSError, AssertionError, ValueError):  # the daemon may be gone: this is only an extra
                _, logs = stage.daemon.call("GET", f"/api/channels/{stage.name}/logs")
                said += [f"the adapter: {json.dumps(logs, indent=1)[-6000:]}", f"the sends: {stage.sends()}"]
            said += [f"the model: {json.dumps(stage.model.messages)[-2000:]}", f"the platform: {stage.platform.log}", f"the daemon:\n{stage.daemon.stderr()}"]
        return "\n".join([f"{platform.name} {name} failed", *said]), False
    finally:
        if stage:
            stage.close()
    return f"{platform.name} {name}: passed", True
