"""Channels in the browser. No adapter runs here: the daemon's answers are given in its place."""

import hashlib
import json
import sys

from playwright.sync_api import expect

import access
import stage as stages
from connections import MARKUP, SECRET, answer, dialog, fact, look, toast
from stage import config

NOW = "2026-11-26T20:00:00.000Z"
BOT = {
    "name": "bot", "display_name": "Ntfy", "channel_type": "ntfy", "adapter": "ntfy", "enabled": True, "configured": True, "has_token": True,
    "agent": "desk", "instance_count": 1, "supervised": True, "state": "started", "connected": False, "started_at": NOW, "ready_at": NOW,
    "next_restart_at": None, "restarts": 0, "last_message_at": None, "messages_received": 0, "messages_sent": 3, "messages_refused": 1,
    "messages_unknown": 2, "last_error": None, "last_error_at": None, "capabilities": [], "account_id": None, "sdk_version": "2026.10.16",
    "protocol_version": 1, "warnings": [], "setup_steps": [],
}
FIELDS = [
    {"key": "NTFY_TOPIC", "label": "Topic", "type": "text", "required": True, "placeholder": "my-topic", "advanced": False, "is_set": True, "value": "alerts"},
    {"key": "NTFY_TOKEN", "label": "Access token", "type": "secret", "required": True, "placeholder": None, "advanced": False, "is_set": True, "value": None},
    {"key": "NTFY_SERVER_URL", "label": "Server", "type": "text", "required": False, "placeholder": "https://ntfy.sh", "advanced": True, "is_set": False, "value": None},
    {"key": "NTFY_MODE", "label": "Mode", "type": "select", "required": False, "placeholder": None, "advanced": False, "options": ["poll", "stream"], "is_set": False, "value": None},
]
NEW = [{**field, "is_set": False, "value": None} for field in FIELDS]
SCHEMA = {"name": "ntfy", "display_name": "ntfy", "description": "Push messages", "fields": NEW, "sdk_version": "1"}
POLICY = {"channel": "bot", "dm_policy": "allowed_only", "group_policy": "all"}
PLATFORMS = [
    {"id": "ntfy", "name": "ntfy", "description": f"Push messages. {MARKUP}", "category": "push", "tags": ["http"], "icon": "🔔", "protocol": "sidecar", "url": None, "docs": None, "i18n": {}, "adapter": "ntfy", "channels": ["bot"], "error": None},
    {"id": "pager", "name": "Pager", "description": "Has no adapter.", "category": "push", "tags": [], "icon": "", "protocol": "sidecar", "url": None, "docs": None, "i18n": {}, "adapter": None, "channels": [], "error": None},
]


# An adapter whose person answers the message "knock".
ADAPTER = '''
import json, sys
def emit(method, **params):
    print(json.dumps({"method": method, "params": params}), flush=True)
if "--describe" in sys.argv:
    fields = [{"key": "ROOM", "label": "Room", "type": "text", "required": False}, {"key": "ROOM_TOKEN", "label": "Token", "type": "secret", "required": False}]
    print(json.dumps({"name": "test", "display_name": "Test platform", "description": "", "fields": fields, "sdk_version": "1"}))
    sys.exit(0)
sys.stderr.write(json.dumps({"ts": 1.0, "level": "warn", "message": "the room is empty", "fields": {}}) + "\\n")
sys.stderr.flush()
emit("ready", capabilities=[], protocol_version=1)
for line in sys.stdin:
    try:
        command = json.loads(line)
    except ValueError as error:
        emit("error", message=f"invalid JSON: {error}")
        continue
    if command["method"] == "shutdown":
        break
    if command["method"] == "send" and command["params"]["text"] == "knock":
        emit("message", user_id="c9", user_name="Ann", text="good morning", message_id="m1")
'''
REAL = f'''
[[sidecar_channels]]
name = "desk-chat"
command = "/usr/bin/python3"
args = {json.dumps(["-c", ADAPTER])}
agent = "desk"
dm_policy = "respond"
'''


class Daemon:
    """What the daemon would say of channels; tests change it."""

    def __init__(self, stage, page):
        self.page = page
        self.channels = [dict(BOT)]
        self.lines = [{"at": NOW, "level": "error", "message": f"login failed {MARKUP}"}]
        self.talks, self.sends, self.pairings = [], [], []
        self.code = (204, None)
        base = f"{stage.daemon.url}/api/channels"
        self.saved = self.answer(f"{base}/*/configure", {"POST": self.store, "DELETE": lambda _: (self.channels.clear(), (200, {"status": "removed", "name": "bot"}))[1]})
        self.tests = self.answer(f"{base}/bot/test", {"POST": lambda request: self.test(request.post_data_json)})
        self.answer(f"{base}/bot/qr/start", {"POST": lambda _: (self.show_code("pending"), self.code)[1]})
        self.answer(f"{base}/bot/qr", {"GET": lambda _: self.code})
        self.answer(f"{base}/bot/logs", {"GET": lambda _: (200, {"name": "bot", "lines": self.lines, "total": len(self.lines)})})
        self.answer(f"{base}/bot/conversations?*", {"GET": lambda _: (200, {"conversations": self.talks, "total": len(self.talks)})})
        self.answer(f"{base}/bot/sends?*", {"GET": lambda _: (200, {"sends": self.sends, "total": len(self.sends)})})
        self.answer(f"{base}/bot", {"GET": lambda _: (200, {**self.channels[0], "policy": POLICY, "fields": FIELDS, "fields_error": None})})
        self.schema_error = None
        self.answer(f"{base}/registry/ntfy", {"GET": lambda _: (200, {**PLATFORMS[0], "schema": None if self.schema_error else SCHEMA, "schema_error": self.schema_error})})
        self.answer(f"{base}/registry", {"GET": lambda _: (200, {"channels": PLATFORMS, "total": 2})})
        self.answer(f"{base}/reload", {"POST": lambda _: (200, {"status": "reloaded", "started": ["bot"], "stopped": [], "total": 1})})
        self.paired = self.answer(f"{base}/pairings", {"POST": lambda request: (201, self.pair(request.post_data_json))})
        self.answer(f"{base}/pairings?*", {"GET": lambda _: (200, {"pairings": self.pairings, "total": len(self.pairings)})})
        self.answer(f"{base}/pairings/p-1", {"DELETE": lambda _: (self.pairings.clear(), (200, {}))[1]})
        self.answer(base, {"GET": lambda _: (200, {"channels": self.channels, "total": len(self.channels)})})

    def answer(self, path, replies):
        return answer(self.page, path, replies)

    def store(self, request):
        name = request.url.split("/")[-2]
        if request.post_data_json["values"].get("NTFY_SERVER_URL") == "here":
            return 400, {"error": "NTFY_SERVER_URL: must be a URL", "field": "NTFY_SERVER_URL"}
        if all(channel["name"] != name for channel in self.channels):
            self.channels.append({**BOT, "name": name})
            return 200, {"status": "saved", "name": name, "created": True, "hot_actions_applied": ["adapter started"], "restart_required": False, "shadowed_secrets": ["NTFY_TOKEN"]}
        return 200, {"status": "saved", "name": name, "created": False, "hot_actions_applied": [], "restart_required": False, "shadowed_secrets": []}

    def test(self, body):
        if body == {}:
            return 400, {"error": "recipient is missing, and the channel has no default_conversation", "field": "recipient"}
        if body["recipient"] == "closed":
            return 502, {"error": "channel bot: HTTP 403", "code": "channel_refused", "status": "refused"}
        return 200, {"status": "sent", "send_id": "s-1", "recipient": body["recipient"]}

    def pair(self, body):
        self.pairings.append({"id": "p-1", "channel": "bot", "state": "offered", "conversation": None, "name": None, "created_at": NOW, "paired_at": None, "expires_at": NOW})
        return {"id": "p-1", "channel": body["channel"], "code": "ABCD2345", "expires_at": NOW}

    def show_code(self, status):
        self.code = (200, {"status": status, "qr_code": "2@abc,def", "qr_url": None, "message": f"Link a device {MARKUP}", "expires_at": "soon", "updated_at": NOW})


def opened(stage, path):
    page = stage.new_page()
    daemon = Daemon(stage, page)
    stage.open(path, page)
    return page, daemon


def row(page, text):
    return page.get_by_role("table", name="Channels").get_by_role("row").filter(has_text=text)


def case_set_up(stage):
    """A channel is set up from the gallery with the values that its adapter describes, and secrets are never shown."""
    stage.expect_refusals(400)
    page, daemon = opened(stage, "#/connections/channels")
    daemon.channels.clear()
    look(page)
    expect(page.get_by_role("heading", name="No channels yet")).to_be_visible()
    access.check(page, "no channels")
    page.keyboard.press("n")
    platforms = page.get_by_role("list", name="Platforms")
    expect(platforms.get_by_role("listitem")).to_have_count(2)
    expect(platforms).to_contain_text(MARKUP)
    expect(platforms).to_contain_text("Set its command in config.toml")
    access.check(page, "the gallery of channels")
    page.get_by_label("Search platforms").fill("http")
    expect(platforms.get_by_role("listitem")).to_have_count(1)
    page.get_by_role("button", name="Set up ntfy").click()
    form = dialog(page)
    expect(form.get_by_label("Name", exact=True)).to_have_value("ntfy-2")
    expect(form.get_by_label("Access token")).to_have_attribute("type", "password")
    form.get_by_role("button", name="Set up").click()
    expect(form.get_by_label("Topic")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Topic").fill("alerts")
    form.get_by_label("Access token").fill(SECRET)
    form.get_by_label("Mode").select_option("poll")
    form.get_by_label("Agent").fill("desk")
    access.check(page, "the form of a channel")
    form.get_by_label("Name", exact=True).fill("bot")
    form.get_by_role("button", name="Set up").click()
    toast(page, "Added bot; adapter started; not used, because the environment or config.toml has another value: NTFY_TOKEN")
    expect(page.get_by_role("heading", name="bot", level=2)).to_be_visible()
    body = {"adapter": "ntfy", "values": {"NTFY_TOPIC": "alerts", "NTFY_TOKEN": SECRET, "NTFY_MODE": "poll"}, "agent": "desk"}
    assert daemon.saved == [("POST", body)], daemon.saved
    assert SECRET not in page.content()

    # A change sends what was changed only: the token stays, a value that was emptied goes.
    page.get_by_role("button", name="Edit").click()
    expect(form.get_by_label("Topic")).to_have_value("alerts")
    expect(form.get_by_label("Access token")).to_have_value("")
    form.get_by_label("Agent").fill("")
    form.locator("details summary").click()
    form.get_by_label("Server").fill("here")
    form.locator("details summary").click()
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_label("Server")).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_label("Server")).to_be_focused()
    form.get_by_label("Server").fill("https://ntfy.example")
    form.get_by_role("button", name="Save").click()
    toast(page, "Saved")
    assert daemon.saved[-1] == ("POST", {"values": {"NTFY_SERVER_URL": "https://ntfy.example"}, "agent": None}), daemon.saved


def case_package(stage):
    """Where the package of the adapters is missing, the gallery says how it is installed, and looks again when asked."""
    page, daemon = opened(stage, "#/connections/channels")
    daemon.schema_error = "the SDK is missing; install it with `pip install librefang-sdk`"
    page.get_by_role("button", name="Add a channel").click()
    missing = page.get_by_role("region", name="Missing package")
    expect(missing).to_contain_text("Channels need the Python package librefang-sdk")
    expect(missing.locator(".steps > li")).to_have_count(3)
    expect(missing.get_by_role("region", name="Commands that install the package")).to_contain_text("pip install librefang-sdk")
    expect(missing.get_by_role("region", name="A first channel")).to_contain_text('command = "/opt/channels/bin/python"')
    expect(missing.get_by_role("link", name="librefang-sdk on PyPI")).to_be_visible()
    platforms = page.get_by_role("list", name="Platforms")
    expect(platforms.get_by_text("needs package")).to_have_count(1)
    access.check(page, "the gallery without the package")
    stage.shoot("channel-package", page)
    missing.get_by_role("button", name="Copy: Commands that install the package").click()
    toast(page, "Copied")
    page.get_by_role("button", name="Set up ntfy").click()
    form = dialog(page)
    expect(form.get_by_role("heading", name="This channel cannot be set up yet")).to_be_visible()
    expect(form.get_by_role("region", name="Commands that install the package")).to_be_visible()
    access.check(page, "a channel that cannot be set up")
    form.locator("footer button").click()
    missing.get_by_role("button", name="Check again").click()
    expect(missing).to_contain_text("The package is still missing.")
    daemon.schema_error = None
    missing.get_by_role("button", name="Check again").click()
    expect(missing).to_have_count(0)
    expect(platforms.get_by_text("needs package")).to_have_count(0)


def case_state(stage):
    """A channel says what is known of it, what it lacks, the last lines of stderr, its conversations and its sends with reasons."""
    stage.expect_refusals(400, 502)
    page, daemon = opened(stage, "#/connections/channels")
    expect(row(page, "bot")).to_contain_text("started")
    expect(page.locator(".badge").filter(has_text="active")).to_have_count(0)
    row(page, "bot").get_by_role("button", name="bot").first.click()
    expect(page.get_by_role("heading", name="bot", level=2)).to_be_focused()
    expect(fact(page, "Direct messages")).to_have_text("answers only allowed chats")
    expect(fact(page, "Sent")).to_have_text("3, 1 refused, 2 unknown")
    log = page.get_by_role("region", name="Error output")
    expect(log).to_have_text(f"error: login failed {MARKUP}")
    expect(page.get_by_role("list", name="Conversations")).to_have_text("No conversations yet.")
    expect(page.get_by_role("list", name="Sends")).to_have_text("Nothing was sent yet.")
    access.check(page, "a channel")

    daemon.channels[0].update(state="failed", last_error=f"The adapter ended with exit code 2: NTFY_TOPIC is missing {MARKUP}", setup_steps=["Set NTFY_TOPIC."])
    daemon.talks = [
        {"id": "t-1", "channel": "bot", "conversation": "c9", "thread": "7", "is_group": True, "title": f"Team {MARKUP}", "created_at": NOW, "last_at": NOW, "is_known": True, "paired_at": None, "sessions": [{"agent_id": "a-1", "session_id": "s-1"}]},
        {"id": "t-2", "channel": "bot", "conversation": "c8", "thread": None, "is_group": False, "title": "", "created_at": NOW, "last_at": NOW, "is_known": False, "paired_at": None, "sessions": []},
    ]
    daemon.sends = [{"id": "s-1", "channel": "bot", "conversation": "c9", "cause": "answer", "agent_id": None, "preview": "Good morning", "status": "refused", "reason": "HTTP 403: the bot was removed", "message_id": None, "tries": 1, "created_at": NOW, "ended_at": NOW, "next_try_at": None}]
    look(page)
    fault = page.get_by_role("alert").filter(has_text="NTFY_TOPIC is missing")
    expect(fault).to_contain_text("is not started again")
    expect(fault).to_contain_text("Set NTFY_TOPIC.")
    talks = page.get_by_role("list", name="Conversations")
    expect(talks.get_by_role("link", name=f"Team {MARKUP}")).to_have_attribute("href", "#/chat/a-1/s-1")
    expect(talks.get_by_role("listitem").nth(1)).to_contain_text("not allowed yet")
    sends = page.get_by_role("list", name="Sends")
    expect(sends).to_contain_text("HTTP 403: the bot was removed")
    expect(sends.locator(".badge.bad")).to_have_text("refused")
    assert page.locator(".tab-channels img").count() == 0 and page.title() != "obeyed"
    access.check(page, "a channel that failed")

    # A test without a conversation, one that is refused, one that goes out.
    form = dialog(page)
    page.get_by_role("button", name="Test").click()
    form.get_by_role("button", name="Send").click()
    expect(form.get_by_label("Conversation")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Conversation").fill("closed")
    form.get_by_role("button", name="Send").click()
    expect(form.get_by_role("alert").filter(has_text="HTTP 403")).to_be_visible()
    form.get_by_label("Conversation").fill("c9")
    form.get_by_label("Message").fill("hello")
    form.get_by_role("button", name="Send").click()
    toast(page, "sent: test message to c9")
    assert [body for _, body in daemon.tests] == [{}, {"recipient": "closed"}, {"recipient": "c9", "message": "hello"}], daemon.tests

    page.get_by_role("link", name="All channels").click()
    expect(row(page, "bot").get_by_role("button", name="bot").first).to_be_focused()
    page.get_by_role("button", name="Reload").click()
    toast(page, "Reloaded: 1 channel started, 0 stopped")
    row(page, "bot").get_by_role("button", name="More for bot").click()
    page.get_by_role("menuitem", name="Remove").click()
    form.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", name="No channels yet")).to_be_visible()
    stage.open("#/connections/channels/gone", page)
    expect(page.get_by_role("heading", name="There is no channel “gone”")).to_be_visible()


def case_pairing(stage):
    """A code that lets a chat in is shown once; chats are shut out again."""
    page, daemon = opened(stage, "#/connections/channels")
    page.get_by_role("button", name="Allow a chat").click()
    form = dialog(page)
    form.get_by_role("button", name="Continue").click()
    expect(form.get_by_role("region", name="Code")).to_have_text("/start ABCD2345")
    access.check(page, "the code of a pairing")
    form.get_by_role("button", name="Done").click()
    assert daemon.paired == [("POST", {"channel": "bot"})], daemon.paired
    paired = page.get_by_role("list", name="Paired chats")
    expect(paired).to_contain_text("Code that waits for a chat")
    assert "ABCD2345" not in page.content()
    daemon.pairings[0].update(state="paired", conversation="c9", name=f"Ann {MARKUP}", paired_at=NOW, expires_at=None)
    look(page)
    expect(paired).to_contain_text(f"Ann {MARKUP}")
    page.get_by_role("button", name="Remove Ann").click()
    form.get_by_role("button", name="Remove").click()
    expect(paired).to_have_text("No chats are paired yet. Allow a chat to let it write to a channel.")


def case_qr_code(stage):
    """A QR code is drawn from its text, and what becomes of it is shown."""
    page, daemon = opened(stage, "#/connections/channels/bot")
    expect(page.get_by_role("heading", name="bot", level=2)).to_be_visible()
    expect(page.get_by_role("img", name="QR code")).to_have_count(0)
    page.get_by_role("button", name="More for bot").click()
    page.get_by_role("menuitem", name="Show a QR code").click()
    code = page.get_by_role("region", name="QR code of the channel")
    expect(code.get_by_role("img", name="QR code")).to_be_visible()
    expect(code).to_contain_text(MARKUP)
    access.check(page, "a QR code")
    daemon.show_code("scanning")
    look(page)
    expect(code).to_contain_text("Confirm on the device.")
    expect(code.get_by_role("img")).to_have_count(0)
    daemon.show_code("expired")
    look(page)
    code.get_by_role("button", name="Show another code").click()
    expect(code.get_by_role("img", name="QR code")).to_be_visible()
    daemon.show_code("confirmed")
    look(page)
    expect(code).to_have_count(0)


@config(REAL)
def case_adapter(stage):
    """With a real adapter: its state, its values, a test message, and a conversation with its answer."""
    stage.daemon.agent("desk")
    page = stage.open("#/connections/channels")
    row(page, "desk-chat").get_by_role("button", name="desk-chat").first.click()
    expect(page.get_by_role("region", name="Error output")).to_contain_text("the room is empty")
    expect(fact(page, "Platform")).to_have_text("Test platform")
    expect(page.locator(".server-head .badge")).to_have_text("started")
    page.get_by_role("button", name="Test").click()
    form = dialog(page)
    form.get_by_label("Conversation").fill("c9")
    form.get_by_label("Message").fill("knock")
    form.get_by_role("button", name="Send").click()
    toast(page, "sent: test message to c9")
    expect(page.locator(".server-head .badge")).to_have_text("active")
    expect(page.get_by_role("list", name="Conversations").get_by_role("link", name="Ann")).to_be_visible()
    sends = page.get_by_role("list", name="Sends")
    expect(sends).to_contain_text("echo: good morning")
    expect(sends.locator(".badge.good")).to_have_count(2)
    page.get_by_role("button", name="Edit").click()
    form.get_by_label("Room").fill("lobby")
    form.get_by_label("Token").fill(SECRET)
    form.get_by_role("button", name="Save").click()
    toast(page, "Saved")
    assert f'ROOM_TOKEN={SECRET}' in open(f"{stage.daemon.home}/secrets.env").read()
    page.get_by_role("button", name="Edit").click()
    expect(form.get_by_label("Room")).to_have_value("lobby")
    expect(form.get_by_label("Token")).to_have_value("")
    assert SECRET not in page.content()


# SHA-256 of the rows of modules, joined by line ends, as another encoder of ISO/IEC 18004 has them at level L.
VECTORS = {
    ("HELLO", 0): "d51e6b3d78d8b096ca2040e60a6b738e6d61f498c4cb0c3b63f035650114d050",  # version 1
    ("2@abc,def/GHI+jkl==,mno,pqr", 1): "ade98a0ddecc35c6409ef2324c09785c2935f4de2309ee6db682875d74e00a73",  # version 2
    ("x" * 100, 2): "6a961ea7e432877a15e811ca1942bc3f1afbae3efac08c5220123b0520bc8485",  # version 5
    ("https://example.com/" + "ab1" * 90, 3): "fc24c4ff10ffbd33b2f6ceb4ebdd6947054a8127cec20346ca57183e06965d4c",  # version 11
    ("é€😀" * 20, 5): "8843c749b9896bcbf3c974c4b9c4e1c13c07925540232b363397965dd62ecba1",  # version 8
    ("z" * 1200, 6): "a52b41aee4e260eb7c9960562af9615006f49faa66450eb8969e36b1d6a5a4f3",  # version 25
}


def case_qr_modules(stage):
    """Codes are those of the standard: small ones, and those with several blocks and version information."""
    page, _ = opened(stage, "#/connections/channels")
    script = "async ([url, text, mask]) => (await import(url)).modules(text, mask)?.map((row) => [...row].join('')) ?? null"
    url = page.evaluate("new URL(performance.getEntriesByType('resource').map((entry) => entry.name).find((name) => name.includes('/lib/dom'))).href")
    url = url.replace(url[url.index("/lib/"):], "/pages/connections/qr.js")
    for (text, mask), expected in VECTORS.items():
        rows = "\n".join(page.evaluate(script, [url, text, mask]))
        assert hashlib.sha256(rows.encode()).hexdigest() == expected, rows
    assert page.evaluate(script, [url, "x" * 2953, None]) is not None, "the longest"
    assert page.evaluate(script, [url, "x" * 2954, None]) is None


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
