"""Money and trust in the browser: budgets, approvals with and without a code, the audit trail, the security systems."""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import struct
import sys
import threading
import time

from playwright.sync_api import expect

import access
import stage as stages
from stage import config, until


def toast(page, text):
    expect(page.locator(".toast").filter(has_text=text).first).to_be_visible()


def ask_for(stage, agent, action):
    """An approval that waits; gives its id."""
    body = {"agent_id": agent, "action": action, "description": f"Please: {action}", "payload": {"command": action}}
    return stage.daemon.call("POST", "/api/approvals", body)["id"]


def code_of(secret, at):
    """The code that an authenticator shows at a moment (RFC 6238: SHA-1, six digits, 30 seconds)."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    digest = hmac.new(key, struct.pack(">Q", int(at) // 30), hashlib.sha1).digest()
    start = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[start:start + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


def status_of(stage, approval):
    return stage.daemon.call("GET", f"/api/approvals/{approval}")["status"]


def case_spending(stage):
    """What was spent stands beside the budgets, and a budget can be set; a wrong one is refused at its field."""
    stage.expect_refusals(400)
    agent = stage.daemon.agent("spender")
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "hello"})
    page = stage.open("#/money")
    expect(page.get_by_role("table", name="By model")).to_contain_text("echo-1")
    expect(page.get_by_role("table", name="By agent")).to_contain_text("spender")
    page.get_by_role("button", name="Budgets").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Daily limit (USD)").fill("-1")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Daily limit (USD)")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Daily limit (USD)").fill("5")
    dialog.get_by_label("Monthly limit (USD)").fill("80.5")
    access.check(page, "the form of a budget")
    dialog.get_by_role("button", name="Save").click()
    toast(page, "Budget saved")
    expect(page.get_by_role("meter", name=re.compile(r"^Today: .* of \$5\.00$"))).to_be_visible()
    budget = stage.daemon.call("GET", "/api/budget")
    assert (budget["daily_limit_usd"], budget["monthly_limit_usd"]) == (5, 80.5), budget
    page.get_by_role("table", name="By agent").get_by_role("button", name="spender").click()
    dialog.get_by_label("Hourly limit (tokens)").fill("1000000")
    dialog.get_by_role("button", name="Save").click()
    until("the agent has its budget", lambda: stage.daemon.call("GET", f"/api/budget/agents/{agent}")["hourly_token_limit"] == 1000000)


def case_approvals(stage):
    """One is approved, one rejected with a reason, two are approved together; new ones come by themselves."""
    agent = stage.daemon.agent("ops")
    page = stage.open("#/money/approvals")
    expect(page.get_by_role("heading", name="No pending approvals")).to_be_visible()
    first = ask_for(stage, agent, "shell_exec")
    expect(page.locator(".approval")).to_have_count(1)
    second, third, fourth = (ask_for(stage, agent, action) for action in ["web_fetch", "file_delete", "agent_kill"])
    expect(page.locator(".approval")).to_have_count(4)
    expect(page.get_by_role("link", name="Approvals")).to_contain_text("4")
    stage.shoot("money-approvals-waiting")
    page.locator(".approval").filter(has_text="Please: shell_exec").get_by_role("button", name="Approve").click()
    toast(page, "Approved")
    expect(page.locator(".approval")).to_have_count(3)
    assert status_of(stage, first) == "approved"
    page.locator(".approval").filter(has_text="Please: web_fetch").get_by_role("button", name="Reject").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("Not today")
    dialog.get_by_role("button", name="Reject").click()
    until("it is rejected", lambda: status_of(stage, second) == "rejected")
    assert stage.daemon.call("GET", f"/api/approvals/{second}")["reason"] == "Not today"
    expect(page.locator(".approval")).to_have_count(2)
    page.get_by_label("Select all").check()
    page.locator(".batch-bar").get_by_role("button", name="Approve").click()
    dialog.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="No pending approvals")).to_be_visible()
    assert {status_of(stage, third), status_of(stage, fourth)} == {"approved"}
    expect(page.get_by_role("table", name="Decided approvals")).to_contain_text("rejected")


ASKER = json.dumps(["-c", (stages.ROOT / "tests/http/mcp_asking_server.py").read_text(), ""])
FORM = {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string", "title": "Name", "description": "As on the badge."},
    "age": {"type": "integer", "title": "Age", "maximum": 150},
    "sure": {"type": "boolean", "title": "Sure"},
    "color": {"type": "string", "title": "Color", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
    "days": {"type": "array", "title": "Days", "items": {"type": "string", "enum": ["mon", "tue"]}},
}}


@config(f'[mcp_servers.s]\ncommand = "/usr/bin/python3"\nargs = {ASKER}\n')
def case_the_form_of_a_server(stage):
    """What a server asks for is filled in, checked by the daemon, and sent to the server."""
    asked = {"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": FORM}}

    def respond(messages, body):
        return "done" if messages[-1]["role"] == "tool" else {"text": "", "calls": [("mcp_s_ask", {"requests": [asked]})]}

    stage.model.respond = respond
    stage.expect_refusals(400)
    agent = stage.daemon.agent("ops", 'mcp_servers = ["s"]\n[capabilities]\ntools = ["*"]\n')
    until("the server is connected", lambda: stage.daemon.call("GET", "/api/mcp/servers/s")["connected"])
    page = stage.open("#/money/approvals")
    turn = threading.Thread(target=stage.daemon.call, args=("POST", f"/api/agents/{agent}/message", {"message": "go"}))
    turn.start()
    card = page.locator(".approval").filter(has_text="Who are you?")
    expect(card).to_contain_text("not trusted")
    card.get_by_role("button", name="Answer").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Ann")
    dialog.get_by_label("Age").fill("200")
    dialog.get_by_label("Sure").select_option("Yes")
    dialog.get_by_label("Color").select_option("Green")
    dialog.get_by_label("Days").select_option(["tue"])
    access.check(page, "approval-form")
    stage.shoot("money-approval-form")
    dialog.get_by_role("button", name="Approve").click()
    expect(dialog).to_contain_text("answer.age")
    dialog.get_by_label("Age").fill("7")
    dialog.get_by_role("button", name="Approve").click()
    toast(page, "Approved")
    turn.join()
    answers = pathlib.Path(stage.daemon.home, "mcp_servers/s/answers").read_text()
    content = json.loads(answers)["result"]["content"]
    assert content == {"name": "Ann", "age": 7, "sure": True, "color": "g", "days": ["tue"]}, content


@config('[approval]\nsecond_factor = "totp"\n')
def case_second_factor(stage):
    """With a second factor it is set up here, and approving asks for its code."""
    stage.expect_refusals(400)
    approval = ask_for(stage, stage.daemon.agent("ops"), "shell_exec")
    page = stage.open("#/money/approvals")
    page.get_by_role("button", name="Set up").click()
    dialog = page.get_by_role("dialog")
    secret = dialog.locator("pre").first.inner_text().replace(" ", "")
    expect(dialog.locator("pre").nth(2)).to_contain_text("\n")
    dialog.get_by_label("Code from the app").fill(code_of(secret, time.time()))
    dialog.get_by_role("button", name="Confirm").click()
    toast(page, "Second factor enabled")
    page.locator(".approval").get_by_role("button", name="Approve").click()
    field = dialog.get_by_label("Code from your authenticator app")
    field.fill("000000")
    dialog.get_by_role("button", name="Approve").click()
    expect(field).to_have_attribute("aria-invalid", "true")
    access.check(page, "the question for a code")
    # The code that confirmed it was used: the next one counts, which a clock that goes a step ahead shows.
    field.fill(code_of(secret, time.time() + 30))
    dialog.get_by_role("button", name="Approve").click()
    until("it is approved", lambda: status_of(stage, approval) == "approved")


def case_audit(stage):
    """The log shows what was done, is searched as far back as it goes, and is found whole."""
    stage.daemon.agent("seen")
    stage.daemon.call("POST", "/api/agents/bulk", {"agents": [{"manifest_toml": f'name = "later-{at}"'} for at in range(600)]})
    page = stage.open("#/money/audit")
    table = page.get_by_role("table", name="Audit entries")
    expect(table).to_contain_text("later-599")
    page.get_by_label("Filter").fill("seen")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(table).to_contain_text("agent spawned")
    expect(table).to_contain_text("Created agent “seen”")
    table.get_by_role("button", name="agent spawned").click()
    expect(page.get_by_role("dialog").locator("pre")).to_contain_text('"name": "seen"')
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    page.get_by_role("button", name="Verify the log").click()
    expect(page.get_by_text("The log is intact")).to_be_visible()


def case_audit_sentences(stage):
    """What was done is said in words, on a phone too, where who did it stands below."""
    agent = stage.daemon.agent("ops")
    stage.daemon.call("PUT", "/api/budget", {"daily_limit_usd": 5})
    stage.daemon.call("PUT", f"/api/budget/agents/{agent}", {"daily_limit_usd": 2, "hourly_token_limit": 1000})
    stage.daemon.call("POST", "/api/tasks", {"title": "Write the changelog"})
    phone = stage.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    stage.open("#/money/audit", phone)
    table = phone.get_by_role("table", name="Audit entries")
    for text in ["Posted task “Write the changelog”", "Set the daily limit to $5.00 for the global budget", "Set the daily limit to $2.00 and the hourly token limit to 1,000 tokens for agent “ops”", "Created agent “ops”"]:
        expect(table.get_by_text(text).locator("visible=true")).to_be_visible()
    expect(table).not_to_contain_text("daily limit usd")
    expect(table.get_by_text("This machine (no API key)").locator("visible=true").first).to_be_visible()
    access.check(phone, "the audit log on a phone")
    stage.shoot("audit-phone", phone)


def case_audit_names(stage):
    """Who acted and what was changed have names; ids and hashes stand in the dialog only."""
    agent = stage.daemon.agent("ops")
    turn, gone = "01a2269a-1c67-7000-b6df-c6c6853115b2", "01a2269a-1c1d-7000-bdc9-d289064225b2"
    actors = {"api": "This machine (no API key)", "client": "Client without a key", "hook": "Hook", "peer": "Peer", "chat": "Chat", "system": "System",
              f"key:{gone}": "Key laptop", f"user:{turn}/key:{gone}": "Ann (key laptop)", f"agent:{agent}/turn:{turn}": "Agent ops"}
    details = {"id": gone, "child": agent, "sha256": "ab" * 32, "kind": "cron job"}
    # This page has no words for what a later daemon may record.
    entries = [{"id": len(actors) - at, "timestamp": "2026-11-29T09:19:23.751Z", "event_type": "child_adopted", "agent_id": agent, "actor": actor, "details": json.dumps(details),
                "hash": "cd" * 32, "prev_hash": "ef" * 32} for at, actor in enumerate(actors)]
    page = stage.new_page()
    answers = {"audit/recent?*": {"entries": entries, "total": len(entries), "next_before": None}, "users?*": {"users": [{"id": turn, "name": "Ann"}], "total": 1},
               "keys?*": {"keys": [{"id": gone, "name": "laptop"}], "total": 1}}
    for path, body in answers.items():
        page.route(f"{stage.daemon.url}/api/{path}", lambda route, _, body=body: route.fulfill(json=body))
    stage.open("#/money/audit", page)
    rows = page.get_by_role("table", name="Audit entries").locator(".t-body .t-row")
    for at, name in enumerate(actors.values()):
        expect(rows.nth(at)).to_contain_text(name)
        expect(rows.nth(at)).to_contain_text("child: ops")
        expect(rows.nth(at)).to_contain_text("kind: cron job")
    expect(rows.first.get_by_role("link", name="ops")).to_have_attribute("href", f"#/agent/{agent}")
    shown = page.locator(".t-body").inner_text()
    assert gone not in shown and "abab" not in shown, shown
    access.check(page, "an audit log with names")
    rows.nth(7).get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"user:{turn}/key:{gone}")
    expect(dialog).to_contain_text("cd" * 32)


def case_security(stage):
    """All sixteen systems are there; what is off, or on in part, comes first with the command that changes it."""
    page = stage.open("#/money/security")
    items = page.get_by_role("list", name="Security systems").get_by_role("listitem")
    expect(items).to_have_count(16)
    # By default no keys are trusted, so no signature is checked; tainted calls are recorded only; there are no other nodes.
    signed = items.filter(has=page.get_by_role("heading", name="Signed manifests", exact=True))
    expect(items.first).to_contain_text("off")
    expect(signed).to_contain_text("off")
    signed.get_by_text("How to turn it on").click()
    expect(signed).to_contain_text("manifest_keys = [")
    expect(signed).to_contain_text("restart the daemon")
    expect(items.filter(has_text="Taint tracking")).to_contain_text("partly on")
    taint = items.filter(has=page.get_by_role("heading", name="Taint tracking", exact=True))
    taint.get_by_text("How to turn it on fully").click()
    expect(taint).to_contain_text('taint = "approve"')
    access.check(page, "how a system is turned on")
    expect(items.filter(has_text="Node authentication")).to_contain_text("not in use")
    expect(items.filter(has_text="Loop guard")).to_contain_text("always on")
    expect(items.filter(has_text="Command sandbox")).to_contain_text("Off: no commands are on the allowlist.")
    on = page.locator(".security-item:is(.on, .always)").count()
    expect(page.get_by_text(f"{on} of 16 on")).to_be_visible()
    home = pathlib.Path(stage.daemon.home, "config.toml")
    home.write_text(home.read_text() + '[security]\ntaint = "approve"\n')
    taint.get_by_role("button", name="Reload config.toml").click()
    expect(taint).to_contain_text("Tainted calls wait for an approval.")
    expect(page.get_by_text(f"{on + 1} of 16 on")).to_be_visible()


def case_pictures(stage):
    """Every part, light and dark, on a desktop and a phone, without barriers."""
    agents = [stage.daemon.agent(name) for name in ["ops", "writer", "support-desk"]]
    for at, agent in enumerate(agents):
        for _ in range(at + 1):
            stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "hello " * 40 * (at + 1)})
    stage.daemon.call("PUT", "/api/budget", {"daily_limit_usd": 0.02, "monthly_limit_usd": 5})
    for action in ["shell_exec", "web_fetch"]:
        ask_for(stage, agents[0], action)
    done = ask_for(stage, agents[1], "file_delete")
    stage.daemon.call("POST", f"/api/approvals/{done}/reject", {"reason": "No"})
    parts = [("spending", ".t-body .t-row"), ("approvals", ".approval"), ("audit", ".t-body .t-row"), ("security", ".security-item")]
    for name, seen in parts:
        stage.shoot_all(f"money-{name}", f"#/money/{name}", lambda page, seen=seen: page.locator(seen).first.wait_for())


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
