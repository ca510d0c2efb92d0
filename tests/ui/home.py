"""The overview: what needs a person, what happened and comes next, and what it cost."""

import re
import sys

from playwright.sync_api import expect

import access
import inbox
import stage as stages


def region(page, name):
    return page.get_by_role("region", name=name, exact=True)


def case_overview(stage):
    """A daemon whose agents have worked opens with the overview; each part leads on."""
    page = stage.open()
    expect(page.get_by_role("heading", name="assistant", level=1)).to_be_visible()
    agent = inbox.fill_inbox(stage)
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "count the apples"})
    stage.open("", page)
    page.reload()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="Overview")).to_have_attribute("aria-current", "page")
    expect(region(page, "Needs you").get_by_role("link").filter(has_text="shell_exec")).to_be_visible()
    expect(region(page, "Needs you")).not_to_contain_text("asleep")
    expect(region(page, "Next runs")).to_contain_text("nightly")
    expect(region(page, "Agents by cost")).to_contain_text("spender")
    expect(page.locator(".stat").filter(has_text="Needs you").locator("strong")).to_have_text("3")
    by_day = region(page, "By day")
    expect(by_day.get_by_role("img")).to_have_accessible_name("Cost by day, the last 30 days")
    expect(by_day.locator("table tbody tr")).to_have_count(30)
    by_day.get_by_role("button", name="Calls").click()
    expect(by_day.locator("table tbody tr").last).to_contain_text(re.compile(r"[1-9]"))
    access.check(page, "the overview")
    talks = region(page, "Recent conversations")
    talks.get_by_role("link", name="please fail").or_(talks.get_by_role("link", name="count the apples")).first.click()
    expect(page.get_by_role("heading", name="ops", level=1)).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("body").click(position={"x": 700, "y": 30})
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


def case_pictures(stage):
    agent = inbox.fill_inbox(stage)
    for text in ["plan the garden", "count the apples"]:
        stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": text})
    stage.shoot_all("home", "#/home", lambda page: expect(region(page, "Agents by cost")).to_contain_text("spender"))


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
