"""The overview: what needs a person, what happened and comes next, and what it cost."""

import re
import sys
import threading
import urllib.error

from playwright.sync_api import expect

import access
import inbox
import stage as stages
from stage import until


def region(page, name):
    return page.get_by_role("region", name=name, exact=True)


def case_overview(stage):
    """A daemon whose agents have worked opens with the overview; each part leads on."""
    page = stage.open()
    expect(page.get_by_role("heading", name="assistant", level=1)).to_be_visible()
    agent = inbox.fill_inbox(stage)
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "count the apples"})
    stage.daemon.call("POST", "/api/schedules", {"agent_id": agent, "cron": "*/15 * * * *", "prompt": "water the garden"})
    stage.model.respond = lambda messages, body: {"status": 500} if "please fail" in str(messages[-1]) else "ok"
    for n in range(8):
        stage.daemon.call("POST", "/api/triggers", {"agent_id": stage.daemon.agent(f"watcher-{n}"), "pattern": {"turn_failed": {}}, "prompt_template": "A turn failed: {{event}}"})
    refused = stage.daemon.agent("refused")
    try:
        stage.daemon.call("POST", f"/api/agents/{refused}/message", {"message": "please fail"})
    except urllib.error.HTTPError:
        pass
    until("the triggers have fired", lambda: stage.daemon.call("GET", "/api/world/query?q=sessions%20where%20messages%20%3E%200%20select%20id")["total"] >= 10)
    stage.open("", page)
    page.reload()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="Overview")).to_have_attribute("aria-current", "page")
    expect(region(page, "Needs you").get_by_role("link").filter(has_text="shell_exec")).to_be_visible()
    expect(region(page, "Needs you")).not_to_contain_text("asleep")
    expect(region(page, "Next runs")).to_contain_text("nightly")
    expect(region(page, "Agents by cost")).to_contain_text("spender")
    expect(page.locator(".stat").filter(has_text="Needs you").locator("strong")).to_have_text("4")
    # A failed turn of a person needs somebody, and the number of failures leads to them.
    expect(region(page, "Needs you").get_by_role("link").filter(has_text="please fail")).to_have_attribute("href", re.compile(rf"#/chat/{refused}/"))
    expect(page.locator(".stat").filter(has_text="Failed turns").get_by_role("link")).to_have_attribute("href", "#/inbox")
    by_day = region(page, "By day")
    expect(by_day.get_by_role("img")).to_have_accessible_name("Cost by day, the last 7 days")
    expect(by_day.locator("table tbody tr")).to_have_count(7)
    by_day.get_by_role("button", name="Calls").click()
    expect(by_day.locator("table tbody tr").last).to_contain_text(re.compile(r"[1-9]"))
    access.check(page, "the overview")
    # What waits is decided in place.
    needs = region(page, "Needs you")
    expect(needs.get_by_role("link").filter(has_text="ops wants to run a command")).to_be_visible()
    needs.get_by_role("button", name="Reject").click()
    expect(needs.get_by_role("link").filter(has_text="shell_exec")).to_have_count(0)
    assert stage.daemon.call("GET", "/api/approvals?status=pending")["total"] == 0
    # What people wrote is there before what others sent, the newest first; what a trigger sent has the name of its event.
    talks = region(page, "Recent conversations")
    expect(region(page, "Next runs")).to_contain_text("water the garden")
    expect(region(page, "Next runs")).to_contain_text("Every 15 minutes")
    lines = talks.get_by_role("listitem")
    expect(lines).to_have_count(6)
    expect(lines.filter(has_text="please fail").first).to_be_visible()
    expect(lines.filter(has_text="Trigger: turn failed").first).to_be_visible()
    times = talks.locator("time").evaluate_all("(nodes) => nodes.map((node) => node.dateTime)")
    assert times == sorted(times, reverse=True), times
    expect(talks).not_to_contain_text('{"kind"')
    # No name of the axis is cut.
    by_day.get_by_role("button", name="Cost").click()
    assert page.evaluate("() => [...document.querySelectorAll('.chart .grid text')].every((text) => text.getBBox().x >= 0)")
    talks.get_by_role("link", name="please fail").or_(talks.get_by_role("link", name="count the apples")).first.click()
    expect(page.get_by_role("heading", name=re.compile("^(ops|refused)$"), level=1)).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("body").click(position={"x": 700, "y": 30})
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


def total(table):
    """The sum of the numbers of a chart's table, once it has been drawn."""
    expect(table).to_be_attached()
    return sum(int(cell) for cell in table.locator("tbody td").all_text_contents())


def case_activity(stage):
    """The charts of the past are empty, fill with what agents do, and are there after a restart."""
    # The stream of what runs now breaks off.
    stage.allowed += ["ERR_"]
    page = stage.open("#/home")
    past = region(page, "Activity")
    expect(past).to_contain_text("Nothing happened in the last 24 hours")
    access.check(page, "the activity of a new daemon")
    agent = stage.daemon.agent("ada")
    for text in ["plan the garden", "count the apples"]:
        stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": text})
    stage.daemon.restart()
    page.reload()
    expect(past.get_by_role("img", name="Turns by hour, the last 24 hours", exact=True)).to_be_visible()
    assert total(past.get_by_role("table", name="Turns by hour, the last 24 hours", exact=True)) == 2
    for name, step, rows in [("7 days", "hour", 7 * 24), ("30 days", "day", 30)]:
        past.get_by_role("button", name=name, exact=True).click()
        table = past.get_by_role("table", name=f"Turns by {step}, the last {name}", exact=True)
        assert total(table) == 2
        assert table.locator("tbody tr").count() in (rows, rows + 1)
        assert past.locator("figure").count() == 8
    access.check(page, "the activity of 30 days")
    past.get_by_role("button", name="24 hours", exact=True).click()
    expect(past.get_by_role("table", name="Cost by hour, the last 24 hours", exact=True)).to_be_attached()


def case_the_overview_is_live(stage):
    """What runs is counted as it runs, and what it led to is there without a reload; the last hour follows."""
    gate = stages.Gate()
    stage.model.respond = lambda messages, body: {"text": ["done"], "gate": gate}
    agent = stage.daemon.agent("ada")
    page = stage.open("#/home")
    figure = lambda name: page.locator(".stat").filter(has_text=name).locator("strong")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(figure("Running now")).to_have_text("0")
    expect(region(page, "Needs you")).to_contain_text("Nothing needs you.")
    expect(region(page, "By day")).to_contain_text("No model was called in the last 30 days.")
    access.check(page, "an overview without anything")
    sending = threading.Thread(target=stage.daemon.call, args=("POST", f"/api/agents/{agent}/message", {"message": "count the pears"}))
    sending.start()
    expect(figure("Running now")).to_have_text("1")
    gate.open()
    sending.join()
    expect(figure("Running now")).to_have_text("0")
    expect(figure("Model calls today")).to_have_text("1")
    expect(region(page, "Recent conversations")).to_contain_text("count the pears")
    past = region(page, "Activity")
    past.get_by_role("button", name="60 minutes").click()
    assert total(past.get_by_role("table", name="Turns by minute, the last 60 minutes", exact=True)) == 1
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "count the plums"})
    until("the minute is read anew", lambda: total(past.get_by_role("table", name="Turns by minute, the last 60 minutes", exact=True)) == 2)


def case_pictures(stage):
    agent = inbox.fill_inbox(stage)
    for text in ["plan the garden", "count the apples"]:
        stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": text})
    stage.shoot_all("home", "#/home", lambda page: (expect(region(page, "Agents by cost")).to_contain_text("spender"), expect(region(page, "Needs you")).to_contain_text("nightly")))


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
