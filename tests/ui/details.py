"""Details that the pages owe to whoever uses them every day: addresses that are followed, charts that keep what they showed, rules in
words, few requests."""

import re
import sys

from playwright.sync_api import expect

import access
import money
import stage as stages
from stage import until


def case_a_query_follows_its_address(stage):
    stage.daemon.agent("ada")
    page = stage.open("#/world/query?q=agents%20select%20name")
    box = page.get_by_role("combobox", name="Query")
    table = page.get_by_role("table", name="Result")
    expect(table).to_contain_text("ada")
    page.evaluate("location.hash = '#/world/query?q=agents%20group%20by%20state%20count'")
    expect(box).to_have_value("agents group by state count")
    expect(table).to_contain_text("Running")
    expect(table).not_to_contain_text("ada")
    page.go_back()
    expect(box).to_have_value("agents select name")
    expect(table).to_contain_text("ada")


def case_charts_keep_what_they_showed(stage):
    """The charts of the world go on where they were when the page was left; what people ask for stands above the engine."""
    page = stage.open("#/world")
    line = page.get_by_role("region", name="Per second").locator("path.line").first
    points = lambda: len(re.findall("[ML]", line.get_attribute("d") or ""))
    until("the chart has three points", lambda: points() >= 3)
    stats = page.locator(".stat > span:first-child")
    expect(stats).to_contain_text(["Agents", "Turns in flight", "Turns completed", "Turns failed"])
    expect(stats.last).to_have_text("Memory")
    page.evaluate("location.hash = '#/settings'")
    expect(page.locator(".provider").first).to_be_visible()
    page.evaluate("location.hash = '#/world'")
    expect(line).to_be_attached()
    until("the points are there again", lambda: points() >= 3)
    page.reload()
    expect(line).to_be_attached()
    until("the points survive a reload", lambda: points() >= 3)


def case_rules_are_said_in_words(stage):
    """A rule is said in words with its time zone, its next run in that of the browser, and the table takes the width of the window."""
    agent = stage.daemon.agent("clock")
    rules = {"weekdays": "0 8 * * MON-FRI", "quarters": "*/15 * * * *", "daily": "@daily", "odd": "5 4 */2 * SUN", "either": "5 4 1-7 * SUN", "uneven": "*/45 * * * *", "season": "0 8 * 6-8 MON-FRI", "fiscal": "0 8 1 */3 *", "interval": "every 2h", "monthly": "30 6 1 * *",
             "office": "*/15 9-17 * * MON-FRI", "closing": "0 18 L * *", "noon": "0 0 12 * * SAT,SUN"}
    for name, rule in rules.items():
        stage.daemon.call("POST", "/api/cron/jobs", {"name": name, "agent_id": agent, "schedule": rule, "timezone": "Europe/Berlin", "prompt": "x"})
    page = stage.new_page(viewport={"width": 1920, "height": 900})
    stage.open("#/automation", page)
    table = page.get_by_role("table", name="Schedules")
    row = lambda name: table.get_by_role("row").filter(has=page.get_by_role("button", name=re.compile(f"^{name}")))
    expect(row("weekdays")).to_contain_text("On weekdays at 08:00")
    expect(row("weekdays")).to_contain_text("Europe/Berlin")
    expect(row("weekdays")).to_contain_text(re.compile(r"0[67]:00 UTC"))
    expect(row("interval")).not_to_contain_text("Europe/Berlin")
    expect(row("quarters")).to_contain_text("Every 15 minutes")
    expect(row("daily")).to_contain_text("Every day at 00:00")
    expect(row("interval")).to_contain_text("Every 2 hours")
    expect(row("monthly")).to_contain_text("On day 1 of each month at 06:30")
    expect(row("office")).to_contain_text("Every 15 minutes from 09:00 to 17:59 on weekdays")
    expect(row("closing")).to_contain_text("On the last day of each month at 18:00")
    expect(row("noon")).to_contain_text("On weekends at 12:00")
    # What runs next stands first.
    due = [job["next_run"] for job in stage.daemon.call("GET", "/api/cron/jobs")["jobs"] if job["name"] in table.locator(".t-body .t-row").first.inner_text()]
    assert due == [min(job["next_run"] for job in stage.daemon.call("GET", "/api/cron/jobs")["jobs"])], due
    # No words are better than wrong ones.
    expect(row("odd").locator("code")).to_have_text("5 4 */2 * SUN")
    # Every 45 minutes is not what */45 is.
    expect(row("uneven")).to_contain_text("Every hour at minutes 0 and 45")
    expect(row("either")).to_contain_text("On days 1 to 7 of each month and every Sunday at 04:05")
    expect(row("season")).to_contain_text("On weekdays at 08:00, from June to August")
    expect(row("fiscal")).to_contain_text("On day 1 of January, April, July and October at 08:00")
    expect(row("odd").get_by_role("link", name="clock")).to_have_attribute("href", f"#/agent/{agent}")
    assert table.bounding_box()["width"] > 1500, table.bounding_box()
    access.check(page, "schedules on a wide window")
    page.get_by_role("button", name="New schedule").click()
    page.get_by_role("dialog").get_by_label("Repeat").select_option("rule")
    chip = page.get_by_role("dialog").locator(".chips button").first.bounding_box()
    rule = page.get_by_role("dialog").get_by_label("When", exact=True).bounding_box()
    assert abs(chip["x"] - rule["x"]) < 2, (chip, rule)


def case_few_requests_are_made(stage):
    """Health reads the metrics once, and the audit log asks for all names in one question."""
    agents = [stage.daemon.agent(f"agent-{n}") for n in range(30)]
    for agent in agents:
        money.ask_for(stage, agent, "shell_exec")
    page = stage.page
    asked = []
    page.on("request", lambda request: asked.append(request.url.split("/api/", 1)[-1]))
    stage.open("#/settings/health")
    expect(page.get_by_role("list", name="Checks")).to_be_visible()
    page.wait_for_timeout(3000)
    assert asked.count("metrics") == 1, asked
    asked.clear()
    page.evaluate("location.hash = '#/money/approvals'")
    expect(page.get_by_role("link", name="agent-29").first).to_be_visible()
    single = [url for url in asked if re.fullmatch(r"agents/[0-9a-f-]{36}", url)]
    assert len(single) == 0, single


def case_security_says_what_it_is(stage):
    page = stage.open("#/money/security")
    systems = page.get_by_role("list", name="Security systems", exact=True)
    taint = systems.get_by_role("listitem").filter(has_text="Taint tracking")
    expect(taint).to_contain_text("Records tainted calls; does not block them.")
    taint.get_by_text("How to turn it on fully").click()
    expect(taint.get_by_role("link", name="Show security.taint")).to_have_attribute("href", "#/settings/config?q=security.taint")
    for name in ["Rate limit", "Node authentication", "Signed manifests", "Memory wiping"]:
        expect(systems.get_by_role("heading", name=name, exact=True)).to_be_visible()
    expect(systems).not_to_contain_text("not in this build")
    expect(systems).not_to_contain_text("[Security]")
    off = systems.get_by_role("listitem").filter(has=page.locator(".badge.warn"))
    for n in range(off.count()):
        expect(off.nth(n).get_by_text("How to turn it on").or_(off.nth(n).get_by_role("link", name=re.compile("^(Open the configuration|Show)"))).first).to_be_visible()
    access.check(page, "the security systems")
    taint.get_by_role("link", name="Show security.taint").click()
    expect(page.locator('.config-line[data-key="security.taint"]')).to_be_visible()
    expect(page.locator('.config-line[data-key="log_level"]')).to_be_hidden()


def case_titles_come_before_buttons_on_a_phone(stage):
    stage.daemon.agent("ada")
    phone = stage.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    for hash in ["#/automation/triggers", "#/money/audit", "#/world/events"]:
        stage.open(hash, phone)
        expect(phone.locator(".page-head .tab-actions button").first).to_be_visible()
        title, text, actions = (phone.locator(f".page-head {part}").bounding_box() for part in ["h1", ".tab-text", ".tab-actions"])
        # Buttons stand beside the title, above the sentence.
        assert abs(title["y"] + title["height"] / 2 - actions["y"] - actions["height"] / 2) < 6, (hash, title, actions)
        assert actions["y"] + actions["height"] <= text["y"] + 8, (hash, text, actions)


def case_an_unknown_address_says_so(stage):
    """An address that names no page is not taken for another; the ways on are there."""
    page = stage.open("#/nonsense")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    access.check(page, "an address without a page")
    page.get_by_role("link", name="Open chat").click()
    expect(page.get_by_role("heading", name="assistant", level=1)).to_be_visible()


def case_tables_are_compact_when_asked(stage):
    page = stage.open("#/money/audit")
    row = page.get_by_role("table").locator(".t-body .t-row").first
    expect(row).to_have_css("height", "42px")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Tables: comfortable").click()
    expect(row).to_have_css("height", "34px")
    page.reload()
    expect(row).to_have_css("height", "34px")
    access.check(page, "a compact table")


def case_a_phone_has_all_pages_in_its_menu(stage):
    page = stage.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    stage.open("#/home", page)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    bar = page.locator("#rail")
    expect(bar.locator("a:visible, button:visible")).to_have_count(5)
    access.check(page, "the bar of a phone")
    for name, title in [("Automation", "Schedules"), ("Cost & control", "Spending"), ("Settings", "Providers")]:
        bar.get_by_role("button", name="More").click()
        page.get_by_role("menuitem", name=name, exact=True).click()
        expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
    expect(bar.get_by_role("link", name="Settings")).to_be_visible()


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
