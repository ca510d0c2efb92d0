"""The web chat on a page of another origin with a strict policy, against the real daemon."""

import pathlib
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import access
import stage as stages
from stage import Gate, config, until

SCRIPT = pathlib.Path(__file__).parents[2] / "api/src/widget/assets/widget.js"
HOSTILE = "# Hi <img src=x onerror=alert(1)>\n\n**bold** and [bad](javascript:alert(1)) and [good](https://example.org/)\n\n- one\n- two\n\n```\n<b>code</b>\n```"
PORT = stages.lasting_port()
LINE = '<script src="{daemon}/widget.js" data-token="token-of-the-shop" async></script>'
# A site whose own styles and shortcuts reach far.
RUDE = """<style>* { letter-spacing: 9px; text-transform: uppercase; font: 40px fantasy; margin: 40px; color: red }
div, button, section, span { display: none; position: static } body { direction: rtl }</style>
<script>heard = []; addEventListener("keydown", (event) => heard.push(event.key));</script>"""
SITE = f"""
[[web_chats]]
name = "shop"
agent = "desk"
allowed_origins = ["http://127.0.0.1:{PORT}"]
token = "token-of-the-shop"
title = "Support"
greeting = "How can I help?"
colour = "#ffe066"
theme = "dark"
rate_limit_per_visitor = 60
"""


def serve_site(daemon, port=PORT, body=LINE, policy="default-src 'none'; script-src {daemon}; connect-src {daemon}; require-trusted-types-for 'script'"):
    """A page of another origin that has the script."""

    class Site(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            page = f'<!doctype html><html lang="en"><title>Shop</title><h1>Shop</h1>{body.replace("{daemon}", daemon)}</html>'
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            if policy:
                self.send_header("Content-Security-Policy", policy.replace("{daemon}", daemon))
            self.end_headers()
            self.wfile.write(page.encode())

    server = ThreadingHTTPServer(("127.0.0.1", port), Site)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{port}"


def streams(stage):
    """The streams of web chats that are open."""
    with urllib.request.urlopen(stage.daemon.url + "/api/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return int(next(line for line in lines if line.startswith("agentsvc_web_chat_streams ")).split()[1])


def say(page, text):
    box = page.get_by_role("textbox", name="Message")
    box.fill(text)
    box.press("Enter")
    expect(box).to_have_value("")


@config(SITE)
def case_foreign_page(stage):
    stage.daemon.agent("desk")
    site = serve_site(stage.daemon.url)
    # A killed daemon, which knows no sites until it has loaded, and the icon that the page lacks.
    stage.allowed += ["favicon", "Failed to load resource", "ERR_", "default-src", "blocked by CORS policy"]
    page = stage.page
    alerts = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    page.goto(site)
    opener = page.get_by_role("button", name="Open chat")
    opener.focus()
    page.keyboard.press("Enter")
    box = page.get_by_role("textbox", name="Message")
    expect(box).to_be_focused()
    log = page.get_by_role("log")
    expect(log).to_contain_text("How can I help?")
    # The focus stays inside.
    for _ in range(6):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.shadowRoot !== null")
    # What is said while the chat is closed is counted.
    gate = Gate()
    stage.model.respond = lambda messages, body: {"text": "Anyone there?", "gate": gate}
    say(page, "Hello")
    page.keyboard.press("Escape")
    gate.open()
    page.get_by_role("button", name="Open chat, 1 unread").click()
    expect(log.locator(".agent")).to_have_count(2)
    # A message that the daemon could not take is the same message when it is sent again.
    stage.model.respond = lambda messages, body: HOSTILE
    refused = []
    page.route("**/messages", lambda route: (refused.append(route.request.post_data_json), route.fulfill(status=503, headers={"Access-Control-Allow-Origin": site})) if route.request.method == "POST" and not refused else route.continue_())
    with page.expect_response(lambda answer: answer.request.method == "POST" and answer.url.endswith("/messages") and answer.status == 202) as stored:
        say(page, "Show me")
    assert stored.value.request.post_data_json == refused[0], (stored.value.request.post_data_json, refused)
    expect(log.locator("strong")).to_have_count(1)
    expect(log.locator("li")).to_have_count(2)
    expect(log.locator("pre code")).to_have_text("<b>code</b>\n")
    assert log.locator("img, b").count() == 0
    assert [a.get_attribute("href") for a in log.locator("a").all()] == ["https://example.org/"]
    # Half an answer, then the daemon is killed: the whole answer comes from the next one, once.
    held = Gate()
    stage.model.respond = lambda messages, body: {"text": "First half and second half", "gate": held}
    say(page, "Tell me more")
    held.let(3)
    expect(log).to_contain_text("First half")
    stage.daemon.restart()
    held.open()
    expect(log.get_by_text("First half and second half")).to_have_count(1)
    expect(log.locator(".agent[aria-busy=false]")).to_have_count(4)
    expect(log.locator(".user")).to_have_count(3)
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.get_by_role("dialog").bounding_box()["width"] == 360
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Open chat")).to_be_focused()
    # The visitor comes back: the same conversation, in its order.
    page.reload()
    page.get_by_role("button", name="Open chat").click()
    expect(log.locator(".user")).to_have_text(["Hello", "Show me", "Tell me more"])
    expect(log.locator(".agent")).to_have_count(3)
    assert not alerts, alerts
    assert page.context.cookies() == []
    assert len(SCRIPT.read_bytes()) < 24_000
    # Another visitor sees none of it. axe is a script of its own, so the page that it checks has no policy.
    free = stage.new_page(bypass_csp=True)
    free.goto(site)
    free.get_by_role("button", name="Open chat").click()
    expect(free.get_by_role("log")).to_contain_text("How can I help?")
    assert "Hello" not in free.get_by_role("log").inner_text()
    stage.shoot("web-chat", free)
    found = Axe().run(free, options={"rules": {"landmark-one-main": {"enabled": False}, "region": {"enabled": False}}})
    assert not found.response["violations"], [(v["id"], [n["html"] for n in v["nodes"]]) for v in found.response["violations"]]


@config(SITE)
def case_rude_site(stage):
    """The styles of the site do not reach the chat, and what is written in it does not reach the site."""
    stage.daemon.agent("desk")
    page = stage.page
    stage.allowed += ["favicon", "Failed to load resource"]
    page.goto(serve_site(stage.daemon.url, body=RUDE + LINE + LINE, policy=None))
    opener = page.get_by_role("button", name="Open chat")
    expect(opener).to_have_count(1)
    box = opener.bounding_box()
    assert (box["width"], box["height"]) == (56, 56), box
    assert box["x"] > 1200 and box["y"] > 700, box
    opener.click()
    expect(page.get_by_role("log")).to_contain_text("How can I help?")
    style = page.get_by_text("How can I help?").evaluate("(node) => { const s = getComputedStyle(node); return [s.letterSpacing, s.textTransform, s.fontSize, s.direction]; }")
    assert style == ["normal", "none", "15px", "ltr"], style
    say(page, "Shift and s?")
    expect(page.get_by_text("echo: Shift and s?")).to_be_visible()
    page.get_by_role("textbox", name="Message").press("s")
    assert page.evaluate("heard") == []
    stage.shoot("web-chat-rude", page)


@config(SITE)
def case_other_origin(stage):
    """A site that is not allowed shows no chat, says why to its author, and stops asking."""
    stage.daemon.agent("desk")
    said = []
    page = stage.page
    stage.allowed += ["favicon", "Failed to load resource", "blocked by CORS", "web chat: no answer"]
    page.on("console", lambda message: said.append(message.text))
    page.clock.install()
    page.goto(serve_site(stage.daemon.url, port=stages.lasting_port()))
    asked = []
    page.on("request", lambda request: asked.append(request.url))

    def tells():
        page.clock.run_for(31_000)
        return [text for text in said if "does allowed_origins have http://127.0.0.1" in text]

    until("the author of the site is told", tells)
    assert page.locator("agentsvc-chat").count() == 0
    before = len(asked)
    page.clock.run_for(600_000)
    assert len(asked) == before, asked


@config(SITE)
def case_streams(stage):
    """A page has a stream while the chat is of use, and one that comes back shows an answer as far as it is written."""
    stage.daemon.agent("desk")
    stage.allowed += ["favicon", "Failed to load resource"]
    page = stage.page
    page.add_init_script("let hidden = false; Object.defineProperty(document, 'hidden', { get: () => hidden }); setHidden = (is) => { hidden = is; document.dispatchEvent(new Event('visibilitychange')); };")
    page.clock.install()
    site = serve_site(stage.daemon.url)
    page.goto(site)
    expect(page.get_by_role("button", name="Open chat")).to_be_visible()
    assert (streams(stage), page.evaluate("localStorage.length")) == (0, 0)
    page.get_by_role("button", name="Open chat").click()
    until("the chat is open", lambda: streams(stage) == 1)
    gate = Gate()
    stage.model.respond = lambda messages, body: {"text": "First half and second half", "gate": gate}
    say(page, "Tell me")
    gate.let(3)
    log = page.get_by_role("log")
    expect(log).to_contain_text("First half")
    page.reload()
    until("only the new page is there", lambda: streams(stage) == 1)
    page.get_by_role("button", name="Open chat").click()
    expect(log.locator(".agent[aria-busy=true]")).to_contain_text("First half")
    gate.open()
    expect(log.locator(".agent[aria-busy=false]")).to_have_text("First half and second half")
    expect(log.locator(".m")).to_have_count(2)
    page.evaluate("setHidden(true)")
    page.clock.run_for(61_000)
    until("a page that no one sees has no stream", lambda: streams(stage) == 0)
    page.evaluate("setHidden(false)")
    until("it comes back", lambda: streams(stage) == 1)
    expect(log.locator(".m")).to_have_count(2)


@config(SITE)
def case_page(stage):
    """The page of the daemon has the line for the pages of a site."""
    page = stage.new_page(permissions=["clipboard-read", "clipboard-write"])
    stage.open("#/connections/channels", page)
    sites = page.get_by_role("region", name="Web chats")
    expect(sites).to_contain_text(f"desk answers on http://127.0.0.1:{PORT}")
    expect(page.get_by_role("heading", name="No channels yet")).to_be_visible()
    page.get_by_role("button", name="Copy the line for shop").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == LINE.replace("{daemon}", stage.daemon.url)
    access.check(page, "web chats")


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
