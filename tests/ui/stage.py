"""What the tests of the web page stand on: the real daemon on a home of its own, a model server that does as it is told,
and a Chromium that reports every error of its console and every refusal of its content security policy.

Each test is a function `case_<name>(stage)` of a file beside this one; `tests/ui.rs` runs them by name:
`python tests/ui/<file>.py <name>`. From the environment: AGENTSVC_BIN (the daemon), AGENTSVC_SCREENSHOTS (a folder), and,
for work on the page itself, AGENTSVC_UI_FROM_DISK=1 (its files come from `api/ui` instead of the binary).
"""

import functools
import http.server
import json
import os
import pathlib
import queue
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
UI = ROOT / "api" / "ui"
PATIENCE_S = 120
PATIENCE_MS = PATIENCE_S * 1000

expect.set_options(timeout=PATIENCE_MS)


class Gate:
    """Holds an answer: each `let()` lets one more piece through, `open()` all."""

    def __init__(self):
        self.pieces = queue.Queue()
        self.opened = threading.Event()

    def let(self, pieces=1):
        for _ in range(pieces):
            self.pieces.put(None)

    def open(self):
        self.opened.set()

    def wait(self):
        deadline = time.monotonic() + PATIENCE_S * 3
        while not self.opened.is_set() and time.monotonic() < deadline:
            try:
                return self.pieces.get(timeout=0.02)
            except queue.Empty:
                pass


class Model:
    """An OpenAI-like server. `respond(messages, body)` gives an answer: a text, a list of pieces of text, or a dict
    with `text`, `calls` (`[(name, arguments)]`), `gate` (a `Gate` that holds each piece), `status` and, with that, `retry_after`."""

    def __init__(self):
        self.respond = lambda messages, body: f"echo: {last_text(messages)}"
        self.requests = []
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.requests.append(body)
                answer = model.respond(body["messages"], body)
                answer = answer if isinstance(answer, dict) else {"text": answer}
                try:
                    self.answer(answer, body.get("stream"))
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def answer(self, answer, is_stream):
                if answer.get("status"):
                    return self.whole(answer["status"], {"error": {"message": "the model is out of order"}}, answer.get("retry_after"))
                text = answer.get("text", "")
                pieces = text if isinstance(text, list) else words(text)
                calls = [
                    {"index": at, "id": f"call_{at}_{len(model.requests)}", "type": "function",
                     "function": {"name": name, "arguments": json.dumps(arguments)}}
                    for at, (name, arguments) in enumerate(answer.get("calls", []))
                ]
                finish = "tool_calls" if calls else "stop"
                usage = {"prompt_tokens": 120, "completion_tokens": max(1, len(pieces))}
                if not is_stream:
                    if answer.get("gate"):
                        answer["gate"].opened.wait(PATIENCE_S * 3)
                    message = {"role": "assistant", "content": "".join(pieces)}
                    if calls:
                        message["tool_calls"] = calls
                    return self.whole(200, {"id": "x", "object": "chat.completion", "model": "scripted", "usage": usage,
                                            "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                self.piece({"delta": {"role": "assistant", "content": ""}})
                for piece in pieces:
                    if answer.get("gate"):
                        answer["gate"].wait()
                    self.piece({"delta": {"content": piece}})
                if answer.get("gate"):
                    answer["gate"].wait()
                if calls:
                    self.piece({"delta": {"tool_calls": calls}})
                self.piece({"delta": {}, "finish_reason": finish}, usage)
                self.raw(b"data: [DONE]\n\n")
                self.wfile.write(b"0\r\n\r\n")

            def piece(self, choice, usage=None):
                event = {"id": "x", "object": "chat.completion.chunk", "model": "scripted", "choices": [{"index": 0, **choice}]}
                if usage:
                    event["usage"] = usage
                self.raw(f"data: {json.dumps(event)}\n\n".encode())

            def raw(self, content):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
                self.wfile.flush()

            def whole(self, status, body, retry_after=None):
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                if retry_after is not None:
                    self.send_header("retry-after", str(retry_after))
                self.end_headers()
                self.wfile.write(content)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def config(self):
        return (f'[default_model]\nprovider = "openai"\nmodel = "echo-1"\nbase_url = "{self.url()}"\n'
                'api_key_env = "TEST_MODEL_KEY"\n[prices."openai/echo-1"]\ninput_per_m = 2.5\noutput_per_m = 10.0\n')


class Scripted:
    """A server of somebody else's: `answers` has a status and a JSON body for each path; other paths are 404."""

    def __init__(self):
        self.answers = {}
        scripted = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"] or 0))
                self.do_GET()

            def do_GET(self):
                status, body = scripted.answers.get(self.path, (404, {"error": "no such path"}))
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


def last_text(messages):
    """The text of the newest message of a request."""
    content = messages[-1]["content"]
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or [] if part.get("type") == "text")


def words(text):
    """`text` in pieces as a model writes them."""
    parts = text.split(" ")
    return [part + (" " if at + 1 < len(parts) else "") for at, part in enumerate(parts)]


class Daemon:
    """The real binary on a home of its own."""

    def __init__(self, config=""):
        self.home = tempfile.mkdtemp(prefix="agentsvc-ui-")
        #: Further variables of its environment, from the next start on.
        self.variables = {}
        # A page is many small requests: the limit of requests is for strangers, not for this test.
        text = f'api_listen = "127.0.0.1:{lasting_port()}"\nrate_limit_per_second = 1000000\n{config}'
        pathlib.Path(self.home, "config.toml").write_text(text)
        self.key = next((line.split('"')[1] for line in config.splitlines() if line.startswith("api_key = ")), None)
        self.start()

    def start(self):
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": self.home, "AGENTSVC_HOME": self.home, "TEST_MODEL_KEY": "k", **self.variables}
        self.log = open(pathlib.Path(self.home, "stderr.txt"), "ab")
        self.process = subprocess.Popen([os.environ["AGENTSVC_BIN"], "start"], env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.log)
        self.url = until("the daemon serves its world", self.ready)

    def ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended: {self.stderr()}")
        try:
            known = json.loads(pathlib.Path(self.home, "daemon.json").read_text())
        except (OSError, ValueError):
            return None
        if known.get("pid") != self.process.pid:
            return None
        self.url = f"http://{known['listen']}"
        try:
            self.call("GET", "/api/status")
        except (OSError, urllib.error.HTTPError):
            return None
        return self.url

    def call(self, method, path, body=None):
        """A JSON call with the right key; gives the parsed answer, and raises HTTPError for a refusal."""
        request = urllib.request.Request(self.url + path, method=method)
        if self.key:
            request.add_header("authorization", f"Bearer {self.key}")
        if body is not None:
            request.add_header("content-type", "application/json")
            request.data = json.dumps(body).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=PATIENCE_S * 3) as response:
            content = response.read()
        return json.loads(content) if content else None

    def agent(self, name, rest=""):
        """Creates an agent; gives its id."""
        return self.call("POST", "/api/agents", {"manifest_toml": f'name = "{name}"\n{rest}'})["agent_id"]

    def stderr(self):
        return pathlib.Path(self.home, "stderr.txt").read_text(errors="replace")[-4000:]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def restart(self):
        """Kills it and starts it again on the same port, so that an open page finds it again."""
        self.stop()
        self.start()

    def configure(self, old, new):
        """Writes `new` in the place of `old` in config.toml."""
        file = pathlib.Path(self.home, "config.toml")
        file.write_text(file.read_text().replace(old, new))


def lasting_port():
    """A free port that the system gives to nobody who asks for any: after a kill it is free for the start behind it, too."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    # Chromium opens no page at some of the lower ones.
    for port in random.sample(range(11_000, max(lowest, 20_000)), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def until(what, probe):
    """Asks `probe` until it gives something; fails naming `what`."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = probe()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"in vain: {what}")


class Stage:
    """One daemon, one model, one browser. `stage.page` is the open page; `stage.faults` what went wrong in it."""

    def __init__(self, playwright, config="", is_offline=False):
        self.model = Model()
        self.scripted = Scripted()
        text = config.replace("{scripted}", self.scripted.url).replace("{model}", self.model.url())
        self.daemon = Daemon(text if is_offline else text + self.model.config())
        self.profile = tempfile.mkdtemp(prefix="agentsvc-ui-profile-")
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
                     "--disable-sync", "--no-first-run", "--disable-quic", "--disable-dev-shm-usage", "--no-proxy-server",
                     # A microphone that beeps, which pages may use.
                     "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
        # The shell is the same engine without the windows around it: it works half as much.
        names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
        path = next((p for p in map(shutil.which, names) if p), None)
        assert path, "Chromium is missing: apt-get install chromium"
        self.browser = playwright.chromium.launch(executable_path=path, args=arguments)
        self.faults = []
        self.allowed = []
        self.shots = pathlib.Path(os.environ.get("AGENTSVC_SCREENSHOTS") or ROOT / "target" / "ui-screenshots")
        self.shots.mkdir(parents=True, exist_ok=True)

    @functools.cached_property
    def page(self):
        """The page of most cases; some have only others."""
        return self.new_page()

    def new_page(self, **options):
        """A page of its own context: another tab with nothing stored. Options as of Playwright's `new_context`."""
        options.setdefault("viewport", {"width": 1360, "height": 860})
        # What turns and breathes for ever is drawn anew with each frame.
        options.setdefault("reduced_motion", "reduce")
        self.context = self.browser.new_context(locale="en-GB", timezone_id="UTC", **options)
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script("addEventListener('securitypolicyviolation', (e) => console.error('CSP: ' + e.violatedDirective + ' ' + e.blockedURI));")
        page.on("console", lambda message: message.type == "error" and self.fault(message.text))
        page.on("pageerror", lambda error: self.fault(f"thrown: {error}"))
        if os.environ.get("AGENTSVC_UI_FROM_DISK"):
            page.route("**/assets/**", from_disk)
            page.route(self.daemon.url + "/", from_disk)
        return page

    def fault(self, text):
        # A refused call is shown by the page, and noted by the browser in its console: tests say which they expect.
        if not any(part in text for part in self.allowed):
            self.faults.append(text)

    def expect_refusals(self, *statuses):
        """The browser notes each refused request as an error; those of these statuses are part of the test."""
        self.allowed += [f"status of {status}" for status in statuses]

    def open(self, hash="", page=None):
        """Opens the web page at an address such as `#/chat`."""
        page = page or self.page
        page.goto(self.daemon.url + "/" + hash)
        return page

    def shoot(self, name, page=None):
        """Keeps a picture of what is seen."""
        (page or self.page).screenshot(path=str(self.shots / f"{name}.png"), animations="disabled")

    def shoot_all(self, name, hash, prepare=lambda page: None):
        """Keeps pictures of a page: light and dark, desktop and phone, each checked for accessibility."""
        import access

        # With AGENTSVC_UI_FEW=1 each is looked at in two of the four ways.
        few = os.environ.get("AGENTSVC_UI_FEW") == "1"
        for device, viewport in [("desktop", {"width": 1360, "height": 860}), ("phone", {"width": 390, "height": 844})]:
            for scheme in ["light", "dark"]:
                if few and (device == "desktop") != (scheme == "light"):
                    continue
                options = {"viewport": viewport, "color_scheme": scheme, "has_touch": device == "phone"}
                page = self.new_page(**options)
                if self.daemon.key:
                    page.add_init_script(f"sessionStorage.setItem('agentsvc-api-key', {json.dumps(self.daemon.key)});")
                self.open(hash, page)
                prepare(page)
                self.shoot(f"{name}-{device}-{scheme}", page)
                # What lies below the window is looked at too, and kept as a picture of its own.
                tall = page.evaluate("() => { const box = document.querySelector('.scroll'); return box && !document.querySelector('dialog[open]') ? box.scrollHeight - box.clientHeight : 0; }")
                if tall > 24:
                    page.set_viewport_size({"width": viewport["width"], "height": min(viewport["height"] + tall, 4000)})
                    page.wait_for_timeout(300)
                    self.shoot(f"{name}-{device}-{scheme}-whole", page)
                access.check(page, f"{name} {device} {scheme}")
                page.context.close()

    def close(self):
        self.browser.close()
        self.daemon.stop()
        shutil.rmtree(self.profile, ignore_errors=True)
        shutil.rmtree(self.daemon.home, ignore_errors=True)


def from_disk(route):
    """Answers a request for a file of the page from `api/ui`."""
    path = route.request.url.split("//", 1)[1].split("/", 1)[1].split("#")[0]
    name = path.split("/", 2)[2] if path.startswith("assets/") else "index.html"
    types = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
    file = UI / name
    if not file.is_file():
        return route.fulfill(status=404, body="the file does not exist")
    text = file.read_text().replace("{version}", "dev") if name == "index.html" else file.read_text()
    csp = ("default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; connect-src 'self'; "
           "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
    headers = {"content-type": types[file.suffix] + "; charset=utf-8", "content-security-policy": csp}
    return route.fulfill(status=200, headers=headers, body=text)


def run(module):
    """Runs the cases that the command line names, or all of a module; prints `passed`."""
    cases = {name.removeprefix("case_"): case for name, case in vars(module).items() if name.startswith("case_")}
    wanted = sys.argv[1:] or list(cases)
    for name in wanted:
        case = cases[name]
        with sync_playwright() as playwright:
            stage = Stage(playwright, getattr(case, "config", ""), getattr(case, "is_offline", False))
            try:
                case(stage)
                assert not stage.faults, "the console says: " + "\n".join(stage.faults)
            except BaseException:
                try:
                    stage.shoot(f"failed-{name}")
                except Exception:  # the page may be gone: its picture is only an extra
                    pass
                sys.stderr.write(f"{name} failed; the console: {stage.faults}\nthe daemon:\n{stage.daemon.stderr()}\n")
                raise
            finally:
                stage.close()
        print(f"{name}: passed", flush=True)
    print("passed")


def offline(case):
    """Marks a case whose daemon has no model provider, as after the first start."""
    case.is_offline = True
    return case


def config(text):
    """Lines of config.toml for a case: `@config('api_key = "k"\\n')`; `{scripted}` becomes the address of `stage.scripted`,
    `{model}` that of `stage.model`."""
    def mark(case):
        case.config = text
        return case
    return mark
