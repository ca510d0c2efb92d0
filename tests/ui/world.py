"""The world in the browser: live numbers, the stream of events, queries, snapshots, rehearsals. A daemon without one of
these parts is shown as such."""

import csv
import datetime
import json
import re
import sys
import urllib.request

from playwright.sync_api import expect

import access
import stage as stages
from stage import until


def toast(page, text):
    expect(page.locator(".toast").filter(has_text=text).first).to_be_visible()


def has(stage, path):
    """Does this daemon have the route? A page of one without says so, which is checked here."""
    if path in stage.daemon.call("GET", "/api/openapi.json")["paths"]:
        return True
    stage.expect_refusals(404)
    hash = {"/api/world": "", "/api/world/events": "/events", "/api/world/query": "/query"}.get(path, "/" + path.rsplit("/", 1)[1])
    page = stage.open(f"#/world{hash}")
    expect(page.get_by_role("heading", name=re.compile("This daemon (does not have it|has no stream)"))).to_be_visible()
    access.check(page, f"without {path}")
    return False


def talk(stage, agent, times=1):
    for _ in range(times):
        stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "hello"})


def case_live(stage):
    """The numbers come and follow what happens."""
    if not has(stage, "/api/world"):
        return
    agents = [stage.daemon.agent(f"a-{at}") for at in range(5)]
    page = stage.open("#/world")
    count = len(stage.daemon.call("GET", "/api/agents"))
    stat = page.locator(".live-stats .stat")
    expect(stat.filter(has_text="Agents").locator("strong")).to_have_text(str(count))
    expect(page.locator(".tab-actions").get_by_role("status")).to_have_text("live")
    stage.daemon.call("POST", "/api/agents/bulk/stop", {"agent_ids": agents[:2]})
    talk(stage, agents[3], 5)
    states = page.get_by_role("list", name="Agents by state")
    expect(states.get_by_role("listitem")).to_have_count(2)
    expect(page.get_by_role("list", name="Queues and limits").get_by_role("listitem").first).to_be_visible()
    expect(page.get_by_role("list", name="Systems by time").get_by_role("listitem").nth(3)).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(r"^Per second: Events .*, Messages .*, Runs started"))).to_be_visible()
    until("the line grows", lambda: page.locator(".lines path.line").first.get_attribute("d").count("L") >= 2)


def case_past(stage):
    """In a new tab, the chart of the rates begins with what the stored events say of the time before."""
    now = datetime.datetime.now(datetime.timezone.utc)
    at = lambda ago: (now - datetime.timedelta(seconds=ago)).isoformat().replace("+00:00", "Z")
    page = stage.page
    # The events of the last two minutes, and a reading: the daemon of a test is too young to have them.
    moment = {**first_moment(stage), "at": at(0), "uptime_seconds": 3600, "events_per_second": 0, "messages_per_second": 0, "fires_per_second": 0}
    told = [{"number": 7, "at": at(150), "kind": "agent_spawned", "event": {}}]
    told += [{"number": 8 + n, "at": at(60), "kind": kind, "event": {}} for n, kind in enumerate(["message_received"] * 10 + ["turn_started"] * 20)]
    reading = stage.daemon.call("GET", "/api/world")
    reading["totals"]["events"] = told[-1]["number"]
    page.route("**/api/world", lambda route: route.fulfill(json=reading))
    stream = lambda name, bodies: "".join(f"event: {name}\ndata: {json.dumps(body)}\n\n" for body in bodies)
    page.route("**/api/world/events?*", lambda route: route.fulfill(content_type="text/event-stream", body=stream("event", told)))
    page.route("**/api/world/stream", lambda route: route.fulfill(content_type="text/event-stream", body=stream("world", [moment])))
    stage.open("#/world", page)
    chart = page.get_by_role("region", name="Per second")
    line = chart.locator("path.line")
    points = lambda at: re.findall("[ML][0-9.]+ ([0-9.]+)", line.nth(at).get_attribute("d") or "")
    # Two minutes less what is older than the first event that is kept; fires of triggers are not known.
    until("the chart has its past", lambda: len(points(0)) > 100)
    assert len(points(1)) > 100 and len(points(2)) < 20, (points(1), points(2))
    # For ten seconds there were 3 events a second, of which 1 was a message.
    lowest = [min(map(float, points(at))) for at in range(2)]
    top, bottom = (float(chart.locator(".grid line").nth(at).get_attribute("y1")) for at in [2, 0])
    scale = chart.locator(".grid text").last.text_content()
    assert scale == "5", scale
    shares = [round((bottom - low) / (bottom - top) * 5, 1) for low in lowest]
    assert shares == [3.0, 1.0], shares
    # The turns that began a minute ago, and no longer go on, were in flight before they ended.
    turns = page.get_by_role("region", name="Turns").locator("path.line").first
    assert len(re.findall("[ML]", turns.get_attribute("d") or "")) > 100
    access.check(page, "the live numbers with their past")


def first_moment(stage):
    """The first reading of the stream of the world."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(stage.daemon.url + "/api/world/stream", timeout=60) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                return json.loads(line.removeprefix(b"data: "))
    raise AssertionError("the stream has ended")


def case_events(stage):
    """What happens is seen as it happens; kinds and texts sift it, and it stands still on demand."""
    if not has(stage, "/api/world/events"):
        return
    agent = stage.daemon.agent("busy")
    page = stage.open("#/world/events")
    table = page.get_by_role("table", name="Events, newest first")
    expect(table).to_contain_text("agent spawned")
    stage.daemon.call("POST", "/api/events", {"event_type": "invoice.paid", "payload": {"number": 4711}, "agent_id": agent})
    expect(table).to_contain_text("invoice.paid")
    page.get_by_label("Contains text").fill("4711")
    expect(table.get_by_role("row")).to_have_count(2)
    table.get_by_role("button", name="custom").click()
    expect(page.get_by_role("dialog").locator("pre")).to_contain_text("invoice.paid")
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    page.get_by_label("Contains text").fill("")
    page.get_by_role("button", name="Turns", exact=True).click()
    talk(stage, agent)
    expect(table).to_contain_text("turn completed")
    assert "invoice.paid" not in table.inner_text()
    page.get_by_role("button", name="Pause").click()
    before = table.get_by_role("row").count()
    talk(stage, agent)
    expect(page.get_by_text("the list is paused")).to_be_visible()
    assert table.get_by_role("row").count() == before
    page.get_by_role("button", name="Resume").click()
    until("the list goes on", lambda: table.get_by_role("row").count() > before)
    page.locator("main").focus()
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def case_logs(stage):
    """Stored lines are there at once, older ones on demand; new ones appear as they are written; level and text filter; a line shows all its fields."""
    for n in range(230):
        stage.daemon.agent(f"early-{n}")
    stage.daemon.restart()
    page = stage.open("#/world/logs")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    table = page.get_by_role("table", name="Log lines, newest first")
    page.get_by_label("Contains text").fill("early-0")
    early = table.get_by_role("row").filter(has_text="agent spawned")
    expect(early).to_have_count(0)
    older = page.locator("button", has_text="Load older lines")
    while older.is_visible():
        with page.expect_response("**/api/logs?*cursor=*"):
            older.click()
        # The last page hides it.
        until("the lines are there", older.is_enabled)
    expect(early.first).to_contain_text("early-0")
    page.get_by_label("Contains text").fill("")
    # No id has such letters.
    stage.daemon.agent("zoe")
    row = table.get_by_role("row").filter(has_text="agent spawned").filter(has_text="zoe")
    expect(row).to_be_visible()
    access.check(page, "the log")
    page.get_by_label("Level").select_option("Errors")
    expect(row).to_have_count(0)
    page.get_by_label("Level").select_option("All levels")
    page.get_by_label("Contains text").fill("no such line")
    expect(row).to_have_count(0)
    page.get_by_label("Contains text").fill("ZOE")
    row.get_by_role("button").click()
    expect(page.get_by_role("dialog", name="agent spawned")).to_contain_text('"name": "zoe"')


def case_query(stage):
    """A query is completed, asked, its faults are marked, its answer is a table that can be kept as CSV and follows live."""
    if not has(stage, "/api/world/query"):
        return
    stage.expect_refusals(400)
    for name in ["ops-one", "ops-two", "writer"]:
        stage.daemon.agent(name)
    page = stage.open("#/world/query")
    box = page.get_by_role("combobox", name="Query")
    box.click()
    page.keyboard.type("age")
    expect(page.get_by_role("option", name=re.compile("^agents"))).to_be_visible()
    page.keyboard.press("Tab")
    expect(box).to_have_value("agents ")
    page.keyboard.type("where stat")
    page.keyboard.press("Tab")
    expect(box).to_have_value("agents where state ")
    page.keyboard.type("= ")
    expect(page.get_by_role("option").filter(has_text="Running")).to_be_visible()
    access.check(page, "completions")
    page.keyboard.press("Escape")
    box.fill('agents where name ~ "ops-*" select name, state sort by name')
    page.keyboard.press("Control+Enter")
    table = page.get_by_role("table", name="Result")
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table.get_by_role("row").nth(1)).to_contain_text("ops-one")
    with page.expect_download() as loading:
        page.get_by_role("button", name="CSV").click()
    rows = list(csv.reader(open(loading.value.path(), newline="")))
    assert rows == [["name", "state"], ["ops-one", "Running"], ["ops-two", "Running"]], rows
    box.fill("agents where toknes > 1")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".query-fault")).to_contain_text("did you mean `tokens`?")
    expect(page.locator(".query-fault")).to_contain_text("             ^")
    box.fill("agents group by state count")
    page.get_by_label("Live").check()
    count = len(stage.daemon.call("GET", "/api/agents"))
    expect(table.get_by_role("row").nth(1)).to_contain_text(str(count))
    stage.daemon.agent("one-more")
    expect(table.get_by_role("row").nth(1)).to_contain_text(str(count + 1))
    # How the reader sorted the table outlives the next answer.
    table.get_by_role("button", name="count").click()
    heading = table.get_by_role("columnheader", name="count")
    expect(heading).to_have_attribute("aria-sort", "descending")
    stage.daemon.agent("another")
    expect(table.get_by_role("row").nth(1)).to_contain_text(str(count + 2))
    expect(heading).to_have_attribute("aria-sort", "descending")


def case_snapshots(stage):
    """A snapshot is taken, and the world goes back to it after it was said what that means."""
    if not has(stage, "/api/world/snapshots"):
        return
    stage.expect_refusals(503)
    agent = stage.daemon.agent("kept")
    page = stage.open("#/world/snapshots")
    expect(page.get_by_role("heading", name="No snapshots yet")).to_be_visible()
    page.get_by_role("button", name="Create a snapshot").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("before the storm")
    dialog.get_by_role("button", name="Create").click()
    table = page.get_by_role("table", name="Snapshots")
    expect(table).to_contain_text("before the storm")
    stage.daemon.call("DELETE", f"/api/agents/{agent}")
    stage.daemon.agent("later")
    table.get_by_role("row").filter(has_text="before the storm").get_by_role("button", name="Restore").click()
    expect(dialog).to_contain_text("A snapshot of the current world is created first")
    access.check(page, "the question before a restore")
    stage.shoot("world-snapshots-restore")
    dialog.get_by_role("button", name="Restore").click()
    toast(page, "Restored")
    names = {one["name"] for one in stage.daemon.call("GET", "/api/agents")}
    assert "kept" in names and "later" not in names, names
    expect(table).to_contain_text("Automatic, before a restore")
    page.get_by_role("button", name="Delete before the storm").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(table.get_by_role("row").filter(has_text="before the storm")).to_have_count(0)


def case_rehearsals(stage):
    """A rehearsal is begun, and its report says what fires and what it costs."""
    if not has(stage, "/api/world/rehearsals"):
        return
    stage.expect_refusals(400)
    agent = stage.daemon.agent("clock")
    stage.daemon.call("POST", "/api/cron/jobs", {"name": "Hourly", "schedule": "@hourly", "agent_id": agent, "prompt": "Go"})
    page = stage.open("#/world/rehearsals")
    page.get_by_role("button", name="Rehearse").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("For", exact=True).fill("soon")
    dialog.get_by_role("button", name="Begin").click()
    expect(dialog.get_by_label("For", exact=True)).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("For", exact=True).fill("2d")
    access.check(page, "the form of a rehearsal")
    dialog.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("heading", name="Forecast cost")).to_be_visible()
    expect(page.locator(".stat").filter(has_text="Fires").locator("strong")).to_have_text("48")
    expect(page.get_by_role("table", name="Fires in order").get_by_role("row").nth(1)).to_contain_text("fired")
    page.get_by_role("group", name=re.compile("^Timeline")).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".picture-tip")).to_contain_text("so far")
    with page.expect_download() as loading:
        page.get_by_role("button", name="Fires as CSV").click()
    assert len(open(loading.value.path()).read().splitlines()) == 49
    access.check(page, "the report of a rehearsal")


def case_pictures(stage):
    """Every part, light and dark, on a desktop and a phone, without barriers."""
    stage.expect_refusals(404)
    paths = stage.daemon.call("GET", "/api/openapi.json")["paths"]
    agents = [stage.daemon.agent(name) for name in ["ops", "writer", "editor"]]
    stage.daemon.call("POST", "/api/cron/jobs", {"name": "Hourly", "schedule": "@hourly", "agent_id": agents[0], "prompt": "Go"})
    if "/api/world/snapshots" in paths:
        stage.daemon.call("POST", "/api/world/snapshots", {"label": "before the storm"})
    if "/api/world/rehearsals" in paths:
        made = stage.daemon.call("POST", "/api/world/rehearsals", {"for": "7d"})["id"]
        until("the rehearsal has ended", lambda: stage.daemon.call("GET", f"/api/world/rehearsals/{made}")["state"] != "running")
    for agent in agents:
        talk(stage, agent, 3)

    def ready(seen):
        def prepare(page):
            page.locator(f"{seen}, .empty").first.wait_for()
            if seen == ".lines":
                drawn = "document.querySelector('.empty') !== null || [...document.querySelectorAll('.lines path.line')].some((one) => (one.getAttribute('d') ?? '').length > 20)"
                until("a line is drawn", lambda: page.evaluate(drawn))
        return prepare

    parts = [("live", "", ".lines"), ("events", "/events", ".t-body .t-row"), ("query", "/query?q=agents%20group%20by%20state%20count", ".query-result .t-row"),
             ("snapshots", "/snapshots", ".t-body .t-row"), ("rehearsals", "/rehearsals", ".cost-figure")]
    for name, hash, seen in parts:
        stage.shoot_all(f"world-{name}", f"#/world{hash}", ready(seen))


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
