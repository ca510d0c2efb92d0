"""The inbox: approvals, failures, budgets and paused schedules in one place, with one badge."""

import re
import sys
import threading

from playwright.sync_api import expect

import access
import money
import stage as stages
from stage import config, last_text, until


def group(page, name):
    return page.get_by_role("region", name=name, exact=True)


def fill_inbox(stage):
    """An approval, a cron job that failed, a paused one, a failed task and a budget that is used up; gives the agent."""
    stage.model.respond = lambda messages, body: {"status": 500} if "fail" in str(messages[-1]) else "ok"
    agent = stage.daemon.agent("ops")
    money.ask_for(stage, agent, "shell_exec")
    call = stage.daemon.call
    job = call("POST", "/api/cron/jobs", {"name": "nightly", "agent_id": agent, "schedule": "@daily", "prompt": "please fail"})["job_id"]
    call("POST", f"/api/cron/jobs/{job}/run")
    call("POST", "/api/cron/jobs", {"name": "asleep", "agent_id": agent, "schedule": "@daily", "prompt": "x", "enabled": False})
    until("the run has failed", lambda: (call("GET", f"/api/cron/jobs/{job}")["last_result"] or {}).get("status") == "failed")
    spender = stage.daemon.agent("spender")
    call("POST", f"/api/agents/{spender}/message", {"message": "hello"})
    call("PUT", f"/api/budget/agents/{spender}", {"daily_limit_usd": 0.0001})
    return agent


def case_everything_that_needs_a_person(stage):
    """Each kind stands in its group; decided and dismissed entries go, and the badge counts what is left."""
    agent = fill_inbox(stage)
    page = stage.open("#/inbox")
    badge = page.locator(".rail-inbox .rail-badge")
    expect(group(page, "Approvals").get_by_role("listitem")).to_contain_text("shell_exec")
    failed = group(page, "Failed runs").get_by_role("listitem")
    expect(failed).to_contain_text("nightly")
    expect(failed).to_contain_text("the model is out of order")
    expect(failed.get_by_role("link", name="ops")).to_have_attribute("href", f"#/agent/{agent}")
    expect(group(page, "Budgets").get_by_role("listitem")).to_contain_text("Budget of spender")
    expect(group(page, "Paused schedules").get_by_role("listitem")).to_contain_text("asleep")
    # What is paused was paused by a person: it is listed, and not counted.
    expect(badge).to_have_text("3")
    expect(page.get_by_role("status").filter(has_text="3 items need you")).to_be_visible()
    access.check(page, "the inbox")
    failed.get_by_role("button", name="Open run: nightly").click()
    expect(page.get_by_text("the model is out of order").first).to_be_visible()
    expect(page).to_have_url(re.compile(rf"#/agent/{agent}/runs/[^/]+$"))
    page.go_back()
    failed.get_by_role("button", name="Run again: nightly").click()
    expect(page.locator(".toast").filter(has_text="Started")).to_be_visible()
    runs = lambda: next(job["run_count"] for job in stage.daemon.call("GET", "/api/cron/jobs")["jobs"] if job["name"] == "nightly")
    until("the job has run again", lambda: runs() == 2)
    group(page, "Approvals").get_by_role("button", name="Approve shell_exec").click()
    expect(group(page, "Approvals")).to_be_hidden()
    expect(badge).to_have_text("2")
    failed.get_by_role("button", name="Dismiss nightly").click()
    expect(group(page, "Failed runs")).to_be_hidden()
    page.reload()
    expect(group(page, "Budgets")).to_be_visible()
    expect(group(page, "Failed runs")).to_be_hidden()
    expect(group(page, "Budgets").get_by_role("link", name="Change the budget: Budget of spender")).to_have_attribute("href", "#/money")
    group(page, "Paused schedules").get_by_role("button", name="Resume: asleep").click()
    expect(group(page, "Paused schedules")).to_be_hidden()
    assert all(job["enabled"] for job in stage.daemon.call("GET", "/api/cron/jobs")["jobs"])
    page.get_by_role("button", name="Dismiss all failures").click()
    expect(page.get_by_role("heading", name="All clear")).to_be_visible()
    expect(badge).to_be_hidden()
    access.check(page, "the empty inbox")


@config('[approval]\nrequire_approval = ["file_write", "shell_exec"]\n')
def case_approvals_say_what_they_would_do(stage):
    """A command, and a file with the lines that change; the message that led to it, and the way to the conversation."""
    def respond(messages, body):
        if messages[-1]["role"] == "tool":
            return "Done."
        if "build" in last_text(messages):
            return {"calls": [("shell_exec", {"command": "rm -rf build && make all"})]}
        return {"calls": [("file_write", {"path": "notes/plan.md", "content": "# Plan\n- first\n- second\n"})]}

    stage.model.respond = respond
    names = {"builder": "run the build", "writer": "write the plan"}
    agents = {name: stage.daemon.agent(name, '[capabilities]\ntools = ["*"]\nshell = ["*"]\n') for name in names}
    stage.model.respond = lambda messages, body: "Kept." if messages[-1]["role"] == "tool" else {"calls": [("file_write", {"path": "notes/plan.md", "content": "# Plan\n- first\n- old\n"})]}
    ask = lambda name: threading.Thread(target=stage.daemon.call, args=("POST", f"/api/agents/{agents[name]}/message", {"message": names[name]}), daemon=True).start()
    pending = lambda: stage.daemon.call("GET", "/api/approvals?status=pending")["approvals"]
    ask("writer")
    until("the first waits", pending)
    stage.daemon.call("POST", f"/api/approvals/{pending()[0]['id']}/approve", {})
    until("it is written", lambda: len(stage.daemon.call("GET", f"/api/agents/{agents['writer']}/traces")["traces"]) == 1)
    stage.model.respond = respond
    ask("builder")
    ask("writer")
    until("both wait", lambda: len(pending()) == 2)
    page = stage.open("#/inbox")
    items = group(page, "Approvals").locator(".inbox-item")
    command = items.filter(has_text="builder wants to run a command")
    expect(command).to_contain_text("$ rm -rf build && make all")
    expect(command).to_contain_text("run the build")
    expect(command).not_to_contain_text("requests to call")
    file = items.filter(has_text="writer wants to write a file")
    expect(file).to_contain_text("notes/plan.md changes")
    expect(file.locator(".diff-line.removed")).to_have_text(re.compile("- old"))
    expect(file.locator(".diff-line.added")).to_have_text(re.compile("- second"))
    access.check(page, "approvals in words")
    stage.shoot("inbox-approvals")
    # The other places say the same, and the tab is marked before it is opened.
    page.evaluate("location.hash = '#/money/audit'")
    expect(page.get_by_role("link", name="Approvals").locator(".badge")).to_have_text("2")
    page.get_by_role("link", name="Approvals").click()
    card = page.locator(".approval").filter(has_text="builder wants to run a command")
    expect(card).to_contain_text("$ rm -rf build && make all")
    access.check(page, "the page of approvals in words")
    card.get_by_role("link", name="Open the conversation").click()
    expect(page.get_by_role("heading", name="builder", level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Approval of shell_exec")).to_contain_text("$ rm -rf build && make all")


NOTES = """window.told = []; window.away = false;
window.Notification = class extends EventTarget { static permission = "default"; static async requestPermission() { Notification.permission = "granted"; return "granted"; }
  constructor(title, options) { super(); window.told.push([title, options.body]); } close() {} };
Object.defineProperty(document, "hidden", { get: () => window.away });"""


def case_notifications_are_turned_on_and_off_in_the_settings(stage):
    """A person who said “not now” finds the switch, and what was dismissed comes back."""
    agent = stage.daemon.agent("ops")
    spender = stage.daemon.agent("spender")
    stage.daemon.call("POST", f"/api/agents/{spender}/message", {"message": "hello"})
    stage.daemon.call("PUT", f"/api/budget/agents/{spender}", {"daily_limit_usd": 0.0001})
    money.ask_for(stage, agent, "shell_exec")
    page = stage.new_page()
    page.add_init_script(NOTES)
    stage.open("#/inbox", page)
    page.get_by_role("button", name="Not now").click()
    page.get_by_role("button", name="Dismiss Budget of spender").click()
    expect(group(page, "Budgets")).to_be_hidden()
    page.get_by_role("link", name="Notifications").click()
    switch = page.get_by_role("switch", name="Desktop notifications")
    expect(switch).not_to_be_checked()
    access.check(page, "the settings of notifications")
    switch.click()
    expect(switch).to_be_checked()
    expect(page.get_by_role("status").filter(has_text="On. You are told")).to_be_visible()
    stage.shoot("settings-notifications", page)
    page.get_by_role("button", name="Show an example").click()
    assert page.evaluate("window.told")[0] == ["ops wants to run a command", "$ make deploy"]
    switch.click()
    expect(switch).not_to_be_checked()
    assert page.evaluate("localStorage.getItem('agentsvc-notify')") == "off"
    page.get_by_role("region", name="Dismissed entries").get_by_role("button", name="Restore").click()
    stage.open("#/inbox", page)
    expect(group(page, "Budgets")).to_be_visible()


def case_the_desktop_is_notified_when_asked(stage):
    """What is new while nobody sees the page is told, once notifications are turned on."""
    agent = stage.daemon.agent("ops")
    money.ask_for(stage, agent, "shell_exec")
    page = stage.new_page()
    page.add_init_script(NOTES)
    page.clock.install()
    stage.open("#/inbox", page)
    offer = page.get_by_text("Get a desktop notification")
    expect(offer).to_be_visible()
    page.get_by_role("button", name="Turn on").click()
    expect(offer).to_be_hidden()
    with page.expect_response("**/api/approvals?*"):
        page.evaluate("() => { window.away = true; document.dispatchEvent(new Event('visibilitychange')); }")
    money.ask_for(stage, agent, "web_fetch")
    for _ in range(40):
        page.clock.run_for(21_000)
        page.wait_for_timeout(200)
        if page.evaluate("window.told.length") > 0:
            break
    [[title, _]] = page.evaluate("window.told")
    assert title == "ops wants to open a web page", title
    page.evaluate("window.away = false")
    page.reload()
    expect(page.get_by_role("heading", name="Inbox", level=1)).to_be_visible()
    expect(offer).to_be_hidden()


def case_pictures(stage):
    fill_inbox(stage)
    stage.shoot_all("inbox", "#/inbox", lambda page: expect(group(page, "Paused schedules")).to_be_visible())


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
