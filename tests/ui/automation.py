"""Automation in the browser: schedules on their time line, triggers, workflows with their runs, goals, tasks."""

import re
import sys

from playwright.sync_api import expect

import access
import stage as stages
from stage import until


def row(page, table, text):
    """The row of a long table that has this text."""
    return page.get_by_role("table", name=table).get_by_role("row").filter(has_text=text)


def toast(page, text):
    expect(page.locator(".toast").filter(has_text=text).first).to_be_visible()


def read_now(page):
    """A page that reads now and then does it at once, as when its tab is looked at again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def case_times(stage):
    """A schedule is made with its faults shown at the field, runs at once, is switched off, changed and deleted."""
    stage.expect_refusals(400)
    stage.daemon.agent("clock")
    page = stage.open("#/automation")
    expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()
    page.get_by_role("button", name="New schedule").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Agent", exact=True).fill("nobody")
    # The time zone is that of the browser, and the parts of a rule make it.
    expect(dialog.get_by_label("Time zone")).to_have_value("UTC")
    repeat = dialog.get_by_label("Repeat")
    expect(repeat).to_have_value("daily")
    expect(dialog.get_by_text("Every day at 09:00")).to_be_visible()
    repeat.select_option("weekly")
    dialog.get_by_label("Day", exact=True).select_option("WED")
    dialog.get_by_label("At", exact=True).fill("25:00")
    expect(dialog.locator(".preview li")).to_have_count(0)
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_text("Enter when it runs, such as 09:00.")).to_be_visible()
    dialog.get_by_label("At", exact=True).fill("07:30")
    expect(dialog.get_by_text("Every Wednesday at 07:30")).to_be_visible()
    repeat.select_option("monthly")
    expect(dialog.get_by_text("On day 1 of each month at 07:30")).to_be_visible()
    repeat.select_option("once")
    dialog.get_by_label("Date and time").fill("2099-12-01T09:00")
    expect(dialog.locator(".preview li")).to_have_count(1)
    expect(dialog.get_by_label("Time zone")).to_be_hidden()
    repeat.select_option("interval")
    expect(dialog.get_by_text("Every 15 minutes")).to_be_visible()
    access.check(page, "the parts of a rule")
    repeat.select_option("rule")
    expect(dialog.get_by_label("When", exact=True)).to_have_value("every 15m")
    dialog.get_by_label("When", exact=True).fill("9 o'clock")
    dialog.get_by_label("Prompt").fill("Say the time")
    expect(dialog.locator(".fault").filter(has_text="cron")).to_be_visible()
    expect(dialog.get_by_label("When", exact=True)).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("When", exact=True).fill("every 2h")
    expect(dialog.get_by_text("Next runs")).to_be_visible()
    expect(dialog.locator(".preview li")).to_have_count(5)
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.locator(".field .fault").filter(has_text="There is no agent named “nobody”")).to_be_visible()
    dialog.get_by_label("Agent", exact=True).fill("clock")
    dialog.get_by_label("Name", exact=True).fill("Talking clock")
    access.check(page, "the form of a schedule")
    dialog.get_by_role("button", name="Create").click()
    toast(page, "Created")
    line = row(page, "Schedules", "Talking clock")
    expect(line).to_contain_text("Never ran")
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("Times are in your time zone, UTC.")
    expect(page.get_by_role("button", name=re.compile("^Talking clock, clock: next .* 12 in range$"))).to_be_visible()

    line.get_by_role("button", name="Run Talking clock now").click()
    expect(line).to_contain_text("completed")
    line.get_by_role("switch").click()
    toast(page, "Disabled")
    expect(line).to_contain_text("Off")
    job = stage.daemon.call("GET", "/api/cron/jobs")["jobs"][0]
    assert job["run_count"] == 1 and job["enabled"] is False, job

    line.get_by_role("button", name="More for Talking clock").click()
    page.get_by_role("menuitem", name="Edit").click()
    expect(dialog.get_by_role("heading", name="Edit schedule")).to_be_visible()
    expect(dialog.get_by_label("Every", exact=True)).to_have_value("2")
    expect(dialog.get_by_label("Unit")).to_have_value("h")
    dialog.get_by_label("Repeat").select_option("weekdays")
    dialog.get_by_label("At", exact=True).fill("09:00")
    dialog.get_by_label("Time zone").fill("Europe/Berlin")
    dialog.get_by_role("button", name="Save").click()
    expect(line).to_contain_text("Europe/Berlin")
    line.get_by_role("button", name="More for Talking clock").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()
    assert stage.daemon.call("GET", "/api/cron/jobs")["total"] == 0


def case_deliveries(stage):
    """The answer of a schedule goes into a file, as its form says, and what became of it is shown; a fault is said."""
    stage.expect_refusals(400)
    agent = stage.daemon.agent("clock")
    call = stage.daemon.call
    made = call("POST", "/api/schedules", {"agent_id": agent, "cron": "0 9 * * *", "prompt": "Say the time", "name": "sunrise"})
    page = stage.open("#/automation")
    line = row(page, "Schedules", "sunrise")

    def deliveries():
        line.get_by_role("button", name="More for sunrise").click()
        page.get_by_role("menuitem", name="Deliveries").click()
        return page.get_by_role("dialog")

    dialog = deliveries()
    expect(dialog.get_by_text("Nothing was delivered yet.")).to_be_visible()
    dialog.get_by_role("button", name="Add target").click()
    dialog.get_by_label("Target").select_option("local_file")
    dialog.get_by_label("Path").fill("../out.md")
    access.check(page, "the targets of a schedule")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator(".fault").filter(has_text="path")).to_be_visible()
    dialog.get_by_label("Path").fill("out.md")
    dialog.get_by_role("button", name="Save").click()
    toast(page, "Saved")
    path = f"/api/schedules/{made['schedule_id']}"
    assert call("GET", f"{path}/targets")["delivery_targets"] == [{"type": "local_file", "path": "out.md", "append": True}]
    call("POST", f"{path}/run")
    until("it was delivered", lambda: [it["status"] for it in call("GET", f"{path}/targets")["deliveries"]] == ["acknowledged"])
    dialog = deliveries()
    expect(dialog.get_by_role("row").filter(has_text="out.md")).to_contain_text("acknowledged")
    dialog.get_by_role("button", name="Remove target").click()
    dialog.get_by_role("button", name="Save").click()
    toast(page, "Saved")
    assert call("GET", f"{path}/targets")["delivery_targets"] == []


def case_rows_in_use(stage):
    """A row that changes keeps the menu that is open in it until that is closed, and the focus."""
    agent = stage.daemon.agent("clock")
    call = stage.daemon.call
    made = {"agent_id": agent, "cron": "0 9 * * *", "prompt": "Say the time"}
    ids = [call("POST", "/api/schedules", {**made, "name": name})["schedule_id"] for name in ("sunrise", "sunset")]
    page = stage.open("#/automation")
    sunrise, sunset = (row(page, "Schedules", name) for name in ("sunrise", "sunset"))
    more = sunrise.get_by_role("button", name="More for sunrise")
    more.click()
    edit = page.get_by_role("menuitem", name="Edit")
    expect(edit).to_be_focused()
    for id in ids:
        call("PUT", f"/api/schedules/{id}", {"cron": "0 10 * * *"})
    read_now(page)
    # The page has read both, for the other one was changed last.
    expect(sunset).to_contain_text("0 10 * * *")
    expect(edit).to_be_focused()
    page.keyboard.press("Escape")
    expect(sunrise).to_contain_text("0 10 * * *")
    expect(more).to_be_focused()
    # A row that an order moves stays where it is while its menu is open.
    ids.append(call("POST", "/api/schedules", {**made, "name": "midnight"})["schedule_id"])
    rows = page.locator(".t-body .t-row")
    read_now(page)
    expect(rows).to_have_count(3)
    page.locator(".t-sort").filter(has_text="Runs").click()
    names = rows.locator("strong").all_inner_texts()
    held = page.get_by_role("button", name=f"More for {names[2]}", exact=True)
    held.click()
    expect(edit).to_be_focused()
    for name in (names[2], names[1]):
        id = ids[("sunrise", "sunset", "midnight").index(name)]
        call("POST", f"/api/schedules/{id}/run")
        until("it has run", lambda id=id: call("GET", f"/api/schedules/{id}")["run_count"] == 1)
    read_now(page)
    # The page has read both, for this one ran last.
    expect(rows.first).to_contain_text(names[1])
    expect(edit).to_be_focused()
    assert rows.locator("strong").all_inner_texts() == [names[1], names[0], names[2]]
    page.keyboard.press("Escape")
    expect(rows.locator("strong")).to_have_text([names[1], names[2], names[0]])
    expect(held).to_be_focused()
    # The row behind a dialog is another one when that is closed.
    more.click()
    edit.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Repeat")).to_be_visible()
    for id in ids:
        call("PUT", f"/api/schedules/{id}", {"cron": "0 11 * * *"})
    read_now(page)
    for name in ("sunrise", "sunset"):
        expect(page.locator(".t-body .t-row").filter(has_text=name)).to_contain_text("0 11 * * *")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(more).to_be_focused()
    switch = sunrise.get_by_role("switch")
    switch.focus()
    page.keyboard.press("Space")
    expect(sunrise).to_contain_text("Off")
    expect(switch).to_be_focused()


def case_examples_fill_the_form(stage):
    """Where there is nothing yet, an example fills the form of a schedule and of a trigger; nothing is made before it is confirmed."""
    stage.daemon.agent("clock")
    page = stage.open("#/automation")
    page.get_by_role("button", name="Summary every weekday morning").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Name")).to_have_value("Morning summary")
    expect(dialog.get_by_label("Repeat")).to_have_value("weekdays")
    assert stage.daemon.call("GET", "/api/cron/jobs")["jobs"] == []
    dialog.get_by_label("Agent", exact=True).fill("clock")
    dialog.get_by_role("button", name="Create").click()
    expect(row(page, "Schedules", "Morning summary")).to_contain_text("On weekdays at 08:00")
    stage.open("#/automation/triggers")
    page.get_by_role("button", name="A task has no assignee").click()
    expect(dialog.get_by_label("Only for")).to_have_value("unassigned")
    dialog.get_by_label("Send to").fill("clock")
    dialog.get_by_role("button", name="Create").click()
    expect(row(page, "Triggers", "Task created, for no agent")).to_contain_text("Never matched")


def case_triggers(stage):
    """A trigger is made, an event of one's own is published, and the fire is seen."""
    stage.daemon.agent("bookkeeper")
    page = stage.open("#/automation/triggers")
    page.get_by_role("button", name="New trigger").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("When").select_option("custom")
    dialog.get_by_label("Send to").fill("bookkeeper")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.locator(".field .fault").filter(has_text="Enter the event type.")).to_be_visible()
    dialog.get_by_label("Event type").fill("invoice.paid")
    dialog.get_by_label("Prompt").fill("Book {{event}}")
    expect(dialog.get_by_text("When the event invoice.paid is published, send the prompt to bookkeeper.")).to_be_visible()
    access.check(page, "the form of a trigger")
    dialog.get_by_role("button", name="Create").click()
    line = row(page, "Triggers", "Event invoice.paid")
    expect(line).to_contain_text("bookkeeper")
    page.get_by_role("button", name="Publish an event").click()
    dialog.get_by_label("Event type").fill("invoice.paid")
    dialog.get_by_label("Payload").fill("{no json")
    dialog.get_by_role("button", name="Publish").click()
    expect(dialog.locator(".field .fault").filter(has_text="Invalid JSON")).to_be_visible()
    dialog.get_by_label("Payload").fill('{"amount": 12}')
    dialog.get_by_role("button", name="Publish").click()
    toast(page, "Published")
    until("the trigger fires", lambda: stage.daemon.call("GET", "/api/triggers")[0]["fire_count"] == 1)
    expect(line.get_by_role("cell").nth(3)).to_contain_text("fired")
    expect(line.get_by_role("cell").nth(4)).to_have_text("1")
    line.get_by_role("button", name="Event invoice.paid").first.click()
    expect(dialog.get_by_text("Last match")).to_be_visible()
    expect(dialog.get_by_role("table").get_by_role("row")).to_have_count(2)
    dialog.get_by_role("button", name="Close").last.click()
    line.get_by_role("switch").click()
    toast(page, "Disabled")
    assert stage.daemon.call("GET", "/api/triggers")[0]["enabled"] is False
    # What the prompt would be with that event, and what the agent would answer.
    line.get_by_role("button", name="More for Event invoice.paid").click()
    page.get_by_role("menuitem", name="Edit").click()
    dialog.get_by_role("button", name="Test with the last event").click()
    expect(dialog.get_by_role("region", name="Prompt for the last event")).to_contain_text("amount")
    access.check(page, "the test of a trigger")
    dialog.get_by_role("button", name="Send this to bookkeeper now").click()
    expect(dialog.get_by_role("region", name="Answer to the test")).to_contain_text("Book {")
    page.keyboard.press("Escape")
    # An event of one's own is published from its trigger.
    line.get_by_role("button", name="More for Event invoice.paid").click()
    page.get_by_role("menuitem", name="Publish its event now").click()
    expect(dialog.get_by_label("Event type")).to_have_value("invoice.paid")
    dialog.get_by_role("button", name="Publish").click()
    expect(line.get_by_role("cell").nth(3)).to_contain_text("disabled")
    # One whose owner is another agent than the one that receives the prompt.
    stage.daemon.agent("watcher")
    page.get_by_role("button", name="New trigger").first.click()
    expect(dialog.get_by_text("When a turn of any agent fails, send the prompt to the agent.")).to_be_visible()
    dialog.get_by_label("Only agents named").fill("web-*")
    dialog.get_by_label("Send to").fill("bookkeeper")
    expect(dialog.get_by_text("When a turn of an agent named web-* fails, send the prompt to bookkeeper.")).to_be_visible()
    dialog.get_by_text("Limits, session and owner").click()
    dialog.get_by_label("Owner").fill("watcher")
    dialog.get_by_role("button", name="Create").click()
    expect(row(page, "Triggers", "Turn failed, agent web-*")).to_contain_text("of watcher")


def case_workflows(stage):
    """A workflow is made, drawn, run, and its steps are seen as they go; a fault stands at its step."""
    stage.expect_refusals(400)
    gate = stages.Gate()
    stage.model.respond = lambda messages, body: {"text": "fine", "gate": gate} if "slowly" in stages.last_text(messages) else "quick"
    writer = stage.daemon.agent("writer")
    page = stage.open("#/automation/workflows")
    page.get_by_role("button", name="New workflow").first.click()
    expect(page).to_have_url(re.compile("#/automation/workflows/new$"))
    page.get_by_label("Name", exact=True).first.fill("Two steps")
    panel = page.get_by_role("complementary", name="Step")
    # It can begin with a template.
    page.get_by_role("group", name="Start from").get_by_role("button", name="Ask several").click()
    expect(page.locator(".graph-step")).to_have_count(4)
    page.get_by_role("group", name="Start from").get_by_role("button", name="One step").click()
    expect(page.locator(".graph-step")).to_have_count(1)
    panel.get_by_label("Name", exact=True).fill("draft")
    panel.get_by_label("Agent").fill("writer")
    panel.get_by_label("Prompt").fill("Quickly: ")
    panel.get_by_role("group", name="Insert a variable").get_by_role("button", name="{{input}}").click()
    expect(panel.get_by_label("Prompt")).to_have_value("Quickly: {{input}}")
    panel.get_by_text("Output name, errors and timeout").click()
    panel.get_by_label("Output variable").fill("text")
    # A step is tried alone, in a session that is gone afterwards.
    panel.get_by_text("Try this step alone").click()
    panel.get_by_label("{{input}}").fill("coffee")
    panel.get_by_role("button", name="Test this step").click()
    expect(panel.locator(".step-answer .md")).to_have_text("quick")
    expect(panel.get_by_text("Tests of later steps begin with this output.")).to_be_visible()
    expect(page.get_by_role("button", name="Step 1, draft: “quick”")).to_be_visible()
    assert stages.last_text(stage.model.requests[-1]["messages"]) == "Quickly: coffee"
    assert stage.daemon.call("GET", f"/api/agents/{writer}/sessions")["total"] == 1
    page.get_by_role("button", name="Add a step at position 2").click()
    panel.get_by_label("Name", exact=True).fill("check")
    panel.get_by_label("Runs").select_option("conditional")
    panel.get_by_label("Agent").fill("writer")
    panel.get_by_label("Prompt").fill("slowly: {{input}}")
    expect(panel.get_by_role("button", name="{{text}}")).to_be_visible()
    panel.get_by_label("Condition").fill("output ==")
    panel.get_by_text("Try this step alone").click()
    expect(panel.get_by_label("{{input}}")).to_have_value("quick")
    page.get_by_role("button", name="Step 1, draft").press("Enter")
    expect(panel.get_by_role("heading", level=2)).to_have_text("1. draft")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(panel.get_by_label("Condition")).to_have_attribute("aria-invalid", "true")
    panel.get_by_label("Condition").fill('output contains "quick"')
    # What is removed comes back.
    panel.get_by_role("button", name="Remove this step").click()
    expect(page.get_by_role("button", name="Step 2, check")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Step 2, check")).to_be_visible()
    panel.get_by_role("button", name="Move up").click()
    expect(page.get_by_role("button", name="Step 1, check")).to_be_visible()
    panel.get_by_role("button", name="Move down").click()
    # Steps are dragged to another place, too.
    step = lambda name: page.get_by_role("button", name=name)
    step("Step 2, check").drag_to(step("Add a step at position 1"))
    expect(step("Step 1, check")).to_be_visible()
    step("Step 1, check").drag_to(step("Add a step at position 3"))
    expect(step("Step 2, check")).to_be_visible()
    access.check(page, "the editor of a workflow")
    stage.shoot("automation-workflow-editor")
    # To run is the next thing that is done.
    page.get_by_role("button", name="Create and run").click()
    dialog = page.get_by_role("dialog", name="Run Two steps")
    dialog.get_by_label("Input").fill("tea")
    dialog.get_by_role("button", name="Run").click()
    expect(page.get_by_role("button", name="Step 2, check: Running")).to_be_visible()
    expect(page.get_by_role("button", name="Step 1, draft: Completed")).to_be_visible()
    expect(page).to_have_url(re.compile("#/automation/workflows/[0-9a-f-]{36}/runs/[0-9a-f-]{36}$"))
    stage.shoot("automation-workflow-running")
    gate.open()
    expect(page.get_by_role("button", name="Step 2, check: Completed")).to_be_visible()
    page.get_by_role("button", name="Step 2, check: Completed").click()
    expect(panel.get_by_role("region", name="Output")).to_contain_text("fine")
    access.check(page, "a step of a run")
    panel.get_by_role("button", name="Close the step").click()
    expect(panel.get_by_role("region", name="Input")).to_contain_text("tea")
    page.get_by_role("link", name="Edit", exact=True).click()
    # Tests begin with what the last run had.
    page.get_by_role("button", name="Step 2, check").click()
    panel.get_by_text("Try this step alone").click()
    expect(panel.get_by_label("{{input}}")).to_have_value("quick")
    dialog = page.get_by_role("dialog")
    page.get_by_label("Name", exact=True).first.fill("Both steps")
    # Leaving asks first.
    page.get_by_role("button", name="Back").click()
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="Both steps")).to_be_visible()
    expect(page).to_have_url(re.compile("#/automation/workflows/[0-9a-f-]{36}$"))
    page.go_back()
    expect(page.get_by_label("Name", exact=True).first).to_have_value("Both steps")
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_role("heading", name="Both steps")).to_be_visible()


def case_runs_of_workflows_have_addresses(stage):
    """A run is opened by its address, Back leads to the run before, and one that is gone says so."""
    stage.expect_refusals(404)
    stage.daemon.agent("writer")
    call = stage.daemon.call
    made = call("POST", "/api/workflows", {"name": "Echo", "steps": [{"name": "say", "agent_name": "writer", "prompt": "{{input}}"}]})["workflow_id"]
    for text in ["tea", "coffee"]:
        call("POST", f"/api/workflows/{made}/run", {"input": text})
    tea, coffee = [run["id"] for run in call("GET", f"/api/workflows/{made}/runs")]
    page = stage.open(f"#/automation/workflows/{made}/runs/{tea}")
    panel = page.get_by_role("complementary", name="Step")
    expect(panel.get_by_role("region", name="Input")).to_contain_text("tea")
    expect(panel.get_by_role("region", name="Output")).to_contain_text("echo: tea")
    access.check(page, "a run of a workflow")
    runs = page.get_by_role("list", name="Runs").get_by_role("link")
    expect(runs).to_have_count(2)
    runs.first.click()
    expect(page).to_have_url(re.compile(f"/runs/{coffee}$"))
    expect(panel.get_by_role("region", name="Output")).to_contain_text("echo: coffee")
    page.get_by_role("link", name="Show the definition").click()
    expect(page.get_by_role("button", name="Step 1, say: writer")).to_be_visible()
    expect(panel).to_be_hidden()
    page.go_back()
    page.go_back()
    expect(page).to_have_url(re.compile(f"/runs/{tea}$"))
    expect(panel.get_by_role("region", name="Output")).to_contain_text("echo: tea")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("dialog", name="Run Echo").get_by_label("Input")).to_have_value("tea")
    page.keyboard.press("Escape")
    page.evaluate(f"location.hash = '#/automation/workflows/{made}/runs/{made}'")
    toast(page, "That run is no longer stored.")
    expect(page).to_have_url(re.compile(f"/workflows/{made}$"))


def case_forms_name_all_that_is_missing(stage):
    """Each field that lacks something says so at once, and nothing says it twice."""
    stage.daemon.agent("writer")
    page = stage.open("#/automation?new=1")
    dialog = page.get_by_role("dialog", name="New schedule")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_text("Choose an agent.")).to_have_count(1)
    expect(dialog.get_by_text("Enter the prompt.")).to_have_count(1)
    expect(dialog.get_by_label("Agent")).to_be_focused()
    access.check(page, "a form that lacks something")
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '#/automation/triggers?new=1'")
    dialog = page.get_by_role("dialog", name="New trigger")
    dialog.get_by_label("When").select_option("custom")
    dialog.get_by_label("Prompt").fill("")
    dialog.get_by_role("button", name="Create").click()
    for text in ["Choose an agent.", "Enter the event type.", "Enter the prompt."]:
        expect(dialog.get_by_text(text)).to_have_count(1)
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '#/automation/workflows/new'")
    page.get_by_role("button", name="Draft and review").click()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("Enter a name.")).to_be_visible()
    expect(page.get_by_text("3 steps lack something; they are marked in the graph.")).to_be_visible()
    panel = page.get_by_role("complementary", name="Step")
    expect(panel.get_by_text("Choose an agent.")).to_be_visible()
    page.get_by_role("button", name="Step 3, Revise: Something is missing").click()
    expect(panel.get_by_text("Choose an agent.")).to_be_visible()
    access.check(page, "a workflow that lacks something")


def case_goals(stage):
    """A goal and a part of it: made, opened with the keyboard, completed."""
    stage.daemon.agent("ops")
    page = stage.open("#/automation/goals")
    page.get_by_role("button", name="New goal").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Launch")
    dialog.get_by_label("Agent").fill("ops")
    dialog.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="More for Launch").click()
    page.get_by_role("menuitem", name="Add a subgoal").click()
    dialog.get_by_label("Title").fill("Payment")
    dialog.get_by_role("button", name="Create").click()
    root = page.get_by_role("treeitem", name=re.compile("^Launch"))
    expect(root).to_have_attribute("aria-expanded", re.compile("true|false"))
    if root.get_attribute("aria-expanded") == "true":
        root.focus()
        page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("treeitem", name="Payment, pending")).to_be_hidden()
    root.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("treeitem", name="Payment, pending")).to_be_visible()
    page.get_by_role("button", name="More for Payment").click()
    page.get_by_role("menuitem", name="Mark as completed").click()
    done = lambda goal: goal["title"] == "Payment" and goal["status"] == "completed"  # noqa: E731
    until("the part is completed", lambda: any(map(done, stage.daemon.call("GET", "/api/goals")["goals"])))
    expect(page.get_by_role("treeitem", name="Payment, completed")).to_be_visible()
    # The tree was read anew; whoever changes the next one begins where the menu was.
    expect(page.get_by_role("button", name="More for Payment")).to_be_focused()


def case_tasks(stage):
    """A task goes over the board: posted, given to an agent, failed, tried again."""
    stage.daemon.agent("worker")
    page = stage.open("#/automation/tasks")
    page.get_by_role("button", name="New task").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Find the leak")
    dialog.get_by_role("button", name="Create").click()

    def column(name):
        return page.get_by_role("region", name=name)

    def act(name):
        page.get_by_role("button", name="More for Find the leak").click()
        page.get_by_role("menuitem", name=name).click()

    expect(column("Pending")).to_contain_text("Find the leak")
    act("Assign to an agent")
    dialog.get_by_label("Agent").fill("worker")
    dialog.get_by_role("button", name="Assign").click()
    expect(column("Running")).to_contain_text("worker")
    act("Mark as failed")
    dialog.get_by_label("Error").fill("No ladder")
    dialog.get_by_role("button", name="Save").click()
    expect(column("Failed")).to_contain_text("No ladder")
    act("Try again")
    expect(column("Pending")).to_contain_text("Find the leak")


def fill_house(stage):
    """A house with something of everything, for pictures."""
    call = stage.daemon.call
    names = ["researcher", "writer", "editor", "checker", "ops", "support-desk"]
    ids = {name: stage.daemon.agent(name) for name in names}
    rules = [("0 9 * * MON-FRI", "Morning digest"), ("*/15 * * * *", "Queue"), ("every 2h", "Page check"), ("0 0 1 * *", "Monthly report"),
             ("30 17 * * *", "Invoices"), ("@hourly", "Summary")]
    for at, (rule, name) in enumerate(rules):
        job = call("POST", "/api/cron/jobs", {"name": name, "schedule": rule, "agent_id": ids[names[at]], "prompt": f"{name}, please"})
        if at % 2 == 0:
            call("POST", f"/api/cron/jobs/{job['job_id']}/run")
    call("POST", "/api/cron/jobs", {"name": "Old import", "schedule": "@daily", "agent_id": ids["ops"], "prompt": "Import", "enabled": False})
    for pattern, prompt in [({"turn_failed": {"name_pattern": "web-*"}}, "Find out why: {{event}}"),
                            ({"task_posted": {"assignee_match": "unassigned"}}, "A task waits: {{event}}"),
                            ({"content_match": {"substring": "refund"}}, "Somebody wants money back: {{event}}")]:
        call("POST", "/api/triggers", {"agent_id": ids["ops"], "pattern": pattern, "prompt_template": prompt})
    steps = [{"name": "draft", "agent_name": "writer", "prompt": "Write about {{input}}", "output_var": "draft"},
             {"name": "facts", "agent_name": "checker", "mode": "fan_out"}, {"name": "style", "agent_name": "editor", "mode": "fan_out"},
             {"name": "notes", "mode": "collect"},
             {"name": "repair", "agent_name": "writer", "mode": "conditional", "condition": "output contains \"echo\"", "prompt": "Repair {{draft}}"}]
    made = call("POST", "/api/workflows", {"name": "Review", "description": "Draft, check from all sides, repair", "steps": steps})
    call("POST", f"/api/workflows/{made['workflow_id']}/run", {"input": "tea"})
    goal = call("POST", "/api/goals", {"title": "Launch the shop", "agent_id": ids["ops"], "status": "in_progress", "due_at": "2031-12-01T00:00:00Z"})
    for title, status in [("Move the catalogue", "completed"), ("Payment works", "in_progress"), ("Write the texts", "pending")]:
        call("POST", "/api/goals", {"title": title, "parent_id": goal["id"], "status": status})
    titles = ["Failing import", "Ticket 4711", "Check the backup", "Slow query"]
    tasks = [call("POST", "/api/tasks", {"title": title, "description": "See the notes of Monday."}) for title in titles]
    for at, end in [(1, None), (2, "complete"), (3, "fail")]:
        call("POST", f"/api/tasks/{tasks[at]['id']}/claim", {"agent_id": ids["ops"]})
        if end:
            call("POST", f"/api/tasks/{tasks[at]['id']}/{end}", {})
    return ids


def case_pictures(stage):
    """Every part, light and dark, on a desktop and a phone, without barriers."""
    fill_house(stage)
    parts = [("times", ".axis-row"), ("triggers", ".t-body .t-row"), ("workflows", ".graph-step"), ("goals", "[role=treeitem] [role=treeitem]:visible"), ("tasks", ".board-card")]
    for name, seen in parts:
        stage.shoot_all(f"automation-{name}", f"#/automation/{name}", lambda page, seen=seen: page.locator(seen).first.wait_for())


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
