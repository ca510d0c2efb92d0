"""Pictures of what the other cases only pass by: pages with nothing on them, dialogs, faults in forms, results. Light and dark, on a
desktop and a phone, each looked at for barriers, as those of the pages are."""

import sys
import time

from playwright.sync_api import expect

import automation
import chat
import money
import settings
import stage as stages
from stage import config, until


def dialog(page):
    return page.get_by_role("dialog")


def press(*names):
    """Buttons that are pressed one after the other: a name, or a name and the place where it stands."""
    def prepare(page):
        for name in names:
            page.get_by_role("button", name=name, exact=True).first.click()
        expect(dialog(page)).to_be_visible()
    return prepare


def case_empty(stage):
    """What a new daemon shows: each page says what it is for, and how to begin."""
    for name, hash in [("times", "#/automation"), ("triggers", "#/automation/triggers"), ("workflows", "#/automation/workflows"), ("goals", "#/automation/goals"),
                       ("tasks", "#/automation/tasks"), ("snapshots", "#/world/snapshots"), ("rehearsals", "#/world/rehearsals"), ("approvals", "#/money/approvals")]:
        stage.shoot_all(f"empty-{name}", hash, lambda page: page.locator(".empty h2:visible, .t-empty:not(:empty):visible").first.wait_for())


def case_automation(stage):
    """The forms of automation, and a run of a workflow with its steps."""
    automation.fill_house(stage)

    def run(page):
        page.locator(".run-item").first.click()
        expect(page.locator(".run-completed").first).to_be_visible()

    def step(page):
        run(page)
        page.get_by_role("button", name="Step 1, draft").click()
        expect(page.get_by_role("complementary", name="Step").get_by_role("region", name="Output")).to_be_visible()

    def goals(page):
        expect(page.get_by_text("Payment works")).to_be_visible()
        page.get_by_role("button", name="Launch the shop", exact=True).click()
        expect(dialog(page)).to_be_visible()

    def editor(page):
        page.get_by_role("button", name="New workflow", exact=True).first.click()
        expect(page.get_by_role("complementary", name="Step")).to_be_visible()

    stage.shoot_all("form-schedule", "#/automation", press("New schedule"))
    stage.shoot_all("form-trigger", "#/automation/triggers", press("New trigger"))
    stage.shoot_all("form-workflow", "#/automation/workflows", editor)
    stage.shoot_all("workflow-run", "#/automation/workflows", run)
    stage.shoot_all("workflow-step", "#/automation/workflows", step)
    stage.shoot_all("form-goal", "#/automation/goals", goals)
    stage.shoot_all("form-task", "#/automation/tasks", press("New task"))


@config('[approval]\nsecond_factor = "totp"\n')
def case_money(stage):
    """Approvals that want a code, an audit trail that was verified, the form of a budget."""
    agent = stage.daemon.agent("ops")
    for action in ["shell_exec", "web_fetch", "file_delete"]:
        money.ask_for(stage, agent, action)

    def code(page):
        page.locator(".approval").first.get_by_role("button", name="Approve").click()
        dialog(page).get_by_label("Code from your authenticator app").fill("000000")
        dialog(page).get_by_role("button", name="Approve").click()
        expect(dialog(page).get_by_label("Code from your authenticator app")).to_have_attribute("aria-invalid", "true")

    def verified(page):
        page.get_by_role("button", name="Verify the log").click()
        expect(page.get_by_text("The log is intact")).to_be_visible()

    stage.expect_refusals(400)
    stage.shoot_all("second-factor-set-up", "#/money/approvals", press("Set up"))
    secret = stage.daemon.call("POST", "/api/approvals/totp/setup", {})["secret"]
    stage.daemon.call("POST", "/api/approvals/totp/confirm", {"code": money.code_of(secret, time.time())})
    stage.shoot_all("approvals-code", "#/money/approvals", code)
    stage.shoot_all("audit-verified", "#/money/audit", verified)
    stage.shoot_all("form-budget", "#/money", press("Budgets"))


@config(settings.DEVICE + '[providers.ollama]\nbase_url = "{scripted}"\n[providers.vllm]\nbase_url = "{scripted}/nothing/v1"\n')
def case_settings(stage):
    """Providers that were looked for, a sign-in, a wrong value of the configuration, backups and what one would change."""
    stage.scripted.answers = {**settings.OLLAMA, "/device": (200, settings.DEVICE_CODE), "/token": settings.PENDING}

    def looked_for(page):
        for name in ["ollama", "vllm"]:
            settings.card(page, name).get_by_role("button", name="Detect").click()
            expect(settings.card(page, name).get_by_role("status")).to_be_visible()

    def sign_in(page):
        page.get_by_label("Search providers").fill("acme")
        settings.card(page, "acme").get_by_role("button", name="Sign in").click()
        expect(dialog(page).locator(".user-code")).to_have_text("WDJB-MJHT")

    def wrong(page):
        key = settings.line(page, "triggers.max_depth")
        key.get_by_role("spinbutton").fill("1000")
        expect(key.get_by_role("alert")).to_contain_text("from 1 to 100")
        key.scroll_into_view_if_needed()

    def dry_run(page):
        page.get_by_role("button", name="Restore…").first.click()
        dialog(page).get_by_role("button", name="Preview changes").click()
        expect(dialog(page).get_by_role("heading", name="Changes")).to_be_visible()

    for _ in range(2):
        stage.daemon.agent(f"agent-{time.monotonic_ns()}")
        stage.daemon.call("POST", "/api/backup")
        until("no backup is under way", lambda: not stage.daemon.call("GET", "/api/backups/status")["running"])
    stage.shoot_all("providers-found", "#/settings", looked_for)
    stage.shoot_all("sign-in", "#/settings", sign_in)
    stage.shoot_all("form-model", "#/settings/models", press("Add a model"))
    stage.shoot_all("config-wrong", "#/settings/config", wrong)
    stage.shoot_all("backups", "#/settings/backups", lambda page: page.locator(".t-body .t-row").nth(1).wait_for())
    stage.shoot_all("backups-dry-run", "#/settings/backups", dry_run)


def case_world(stage):
    """A query with a fault and one with an answer, an event, the question before a restore, the form of a rehearsal and a busy report."""
    stage.expect_refusals(400)
    agents = [stage.daemon.agent(name) for name in ["ops", "writer", "billing"]]
    for at, (agent, rule) in enumerate(zip(agents, ["@hourly", "*/20 * * * *", "0 9 * * MON-FRI"])):
        stage.daemon.call("POST", "/api/cron/jobs", {"name": f"Job {at + 1}", "schedule": rule, "agent_id": agent, "prompt": "Go"})
        stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "hello " * 60})
    stage.daemon.call("PUT", f"/api/budget/agents/{agents[1]}", {"daily_limit_usd": 0.05, "monthly_limit_usd": None, "hourly_token_limit": None})
    stage.daemon.call("POST", "/api/world/snapshots", {"label": "before the cleanup"})
    made = stage.daemon.call("POST", "/api/world/rehearsals", {"for": "3d", "model": "recorded"})["id"]
    until("the rehearsal has ended", lambda: stage.daemon.call("GET", f"/api/world/rehearsals/{made}")["state"] != "running")

    def event(page):
        page.locator(".t-body .t-open").first.click()
        expect(dialog(page)).to_be_visible()

    def fault(page):
        page.get_by_role("combobox", name="Query").fill("agents where toknes > 1")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator(".query-fault")).to_contain_text("tokens")

    stage.shoot_all("event", "#/world/events", event)
    stage.shoot_all("query-fault", "#/world/query", fault)
    stage.shoot_all("query-answer", "#/world/query?q=agents%20select%20name%2C%20state%2C%20tokens%2C%20cost%20sort%20by%20tokens%20desc", lambda page: page.locator(".query-result .t-row, .query-fault:not(:empty)").first.wait_for())
    stage.shoot_all("form-snapshot", "#/world/snapshots", press("Create a snapshot"))
    stage.shoot_all("restore", "#/world/snapshots", press("Restore"))
    stage.shoot_all("form-rehearsal", "#/world/rehearsals", press("Rehearse"))
    stage.shoot_all("rehearsal-busy", "#/world/rehearsals", lambda page: page.locator(".cost-figure").wait_for())


@config('[approval]\nrequire_approval = ["memory_store"]\n')
def case_chat(stage):
    """A new agent, commands, the lists on a phone, tool calls and one that waits for a person, a failed turn."""
    def respond(messages, body):
        said = stages.last_text(messages)
        if messages[-1]["role"] == "tool":
            return "Here is what I found: **two files**, and nothing else.\n\n- `notes.md`\n- `plan.md`"
        if "remember" in said:
            return {"text": "", "calls": [("memory_store", {"key": "colour", "value": "blue"})]}
        return {"status": 400} if "fail" in said else {"text": "Let me look.", "calls": [("file_list", {"path": "."}), ("file_read", {"path": "missing.md"})]}

    stage.model.respond = respond
    rest = '[capabilities]\ntools = ["*"]\nmemory_write = ["*"]\n'
    agent = stage.daemon.agent("research-assistant", 'description = "Looks things up and writes summaries"\n' + rest)
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "What is in the folder?"})
    failing = stage.daemon.agent("failing")

    def tools(page):
        chat.settled(page)
        for summary in page.locator("details.tool summary").all():
            summary.click()

    def commands(page):
        chat.settled(page)
        chat.prompt(page).fill("/")
        expect(page.get_by_role("listbox", name="Commands")).to_be_visible()

    def drawer(page):
        chat.settled(page)
        toggle = page.get_by_role("button", name="Agents and sessions")
        if toggle.is_visible():
            toggle.click()
        expect(page.get_by_role("listbox", name="Sessions").get_by_role("option").first).to_be_visible()

    def new_agent(page):
        chat.settled(page)
        toggle = page.get_by_role("button", name="Agents and sessions")
        if toggle.is_visible():
            toggle.click()
        page.get_by_role("button", name="New agent").first.click()
        expect(dialog(page).get_by_role("status")).to_contain_text("Valid. ")

    def failed(page):
        chat.say(page, "please fail")
        expect(chat.turns(page).last.get_by_role("alert")).to_be_visible()
        expect(page.locator("article.turn.live")).to_have_count(0)

    def approval(page):
        chat.say(page, "remember blue")
        expect(page.get_by_role("region", name="Approval of memory_store").last).to_be_visible()

    stage.shoot_all("chat-tools-open", f"#/chat/{agent}", tools)
    stage.shoot_all("chat-commands", f"#/chat/{agent}", commands)
    stage.shoot_all("chat-lists", f"#/chat/{agent}", drawer)
    stage.shoot_all("chat-new-agent", f"#/chat/{agent}", new_agent)
    stage.shoot_all("chat-failed", f"#/chat/{failing}", failed)
    waiting = stage.daemon.agent("waiting", rest)
    stage.shoot_all("chat-approval", f"#/chat/{waiting}", approval)


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
