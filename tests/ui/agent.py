"""The page of an agent: what it shows, its settings as a form and as TOML, the chat beside them, its runs and their traces."""

import re
import sys
import threading
import time

from playwright.sync_api import expect

import access
import chat
import stage as stages
from stage import Gate, config, last_text, until

MANIFEST = """description = "Keeps the ledger"
system_prompt = \"\"\"
You keep the ledger.
Answer briefly.
\"\"\"
tags = ["money"]
[capabilities]
tools = ["*"]
"""


def calls_the_time(messages, body):
    """A model that asks for the time, and says that it did."""
    if messages[-1]["role"] == "tool":
        return "It is **noon**."
    return {"calls": [("system_time", {})]} if "time" in last_text(messages) else "ok"


def agent_of(stage, agent):
    return stage.daemon.call("GET", f"/api/agents/{agent}")


def save(page):
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast").filter(has_text="Saved").first).to_be_visible()
    expect(page.locator(".save-bar")).to_be_hidden()


def case_overview(stage):
    """What an agent is, may and did stands on one page, which is reached from where it is named."""
    stage.model.respond = calls_the_time
    agent = stage.daemon.agent("ledger", MANIFEST)
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "what time is it?"})
    stage.daemon.call("POST", "/api/cron/jobs", {"name": "close", "agent_id": agent, "schedule": "@daily", "prompt": "close the books"})
    page = stage.open(f"#/chat/{agent}")
    page.get_by_role("link", name="Overview and settings of the agent").click()
    expect(page.get_by_role("heading", name=re.compile("ledger"), level=1)).to_contain_text("running")
    about = page.get_by_role("region", name="About")
    expect(about).to_contain_text("Keeps the ledger")
    expect(about).to_contain_text("You keep the ledger.")
    may = page.get_by_role("region", name="Capabilities")
    expect(may).to_contain_text("Read and change files in its own workspace")
    expect(may).to_contain_text("It cannot run commands, create agents or reach the internet.")
    expect(may).to_contain_text("All tools")
    expect(page.get_by_role("region", name="Recent runs").get_by_role("link").nth(1)).to_contain_text("done")
    expect(page.get_by_role("region", name="Automation")).to_contain_text("1 schedule, next")
    access.check(page, "the page of an agent")
    page.get_by_role("button", name="More for ledger").click()
    page.get_by_role("menuitem", name="Change the budget").click()
    page.get_by_role("dialog", name="Budget of ledger").get_by_label("Daily limit (USD)").fill("2.5")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(may).to_contain_text("Spend at most $2.50 a day")
    expect(page.get_by_role("region", name="Automation")).to_contain_text("of $2.50 today")
    page.get_by_role("link", name=re.compile("^Schedules")).click()
    expect(page.get_by_role("table", name="Schedules").get_by_role("row").filter(has_text="close")).to_contain_text("Every day at 00:00")
    # From the palette, and from the table of runs to a trace.
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search everything")).to_be_focused()
    page.keyboard.type("ledger")
    page.get_by_role("option").filter(has_text="ledger: overview and settings").click()
    page.get_by_role("button", name="More for ledger").click()
    page.get_by_role("menuitem", name="Stop the agent").click()
    expect(page.get_by_role("heading", name=re.compile("ledger"), level=1)).not_to_contain_text("running")
    page.get_by_role("button", name="More for ledger").click()
    page.get_by_role("menuitem", name="Delete the agent").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete agent").click()
    expect(page.get_by_role("heading", name="assistant", level=1)).to_be_visible()


def case_settings_as_a_form(stage):
    """Fields change one agent: only what differs is sent, it is shown before, and a refusal stands at its field."""
    stage.expect_refusals(400, 409)
    stage.daemon.agent("taken")
    agent = stage.daemon.agent("ledger", MANIFEST)
    page = stage.open(f"#/agent/{agent}/settings")
    name = page.get_by_label("Name", exact=True)
    expect(name).to_have_value("ledger")
    expect(page.get_by_role("button", name="Model: Default: openai / echo-1")).to_be_visible()
    bar = page.locator(".save-bar")
    expect(bar).to_be_hidden()
    page.get_by_label("System prompt").fill("You keep the ledger.\nAnswer in full sentences.\n")
    page.get_by_label("Tags").fill("books,")
    page.get_by_label("Temperature").fill("0.4")
    expect(bar).to_contain_text("3 changes: tags, system prompt, temperature")
    bar.get_by_text("Show the difference").click()
    expect(bar.locator(".diff-line.added")).to_have_text([re.compile("books"), re.compile("Answer in full sentences."), re.compile("0.4")])
    expect(bar.locator(".diff-line.removed")).to_have_text([re.compile("Answer briefly.")])
    access.check(page, "the settings of an agent, changed")
    save(page)
    expect(bar).to_be_hidden()
    now = agent_of(stage, agent)
    assert (now["tags"], now["model"]["temperature"]) == (["money", "books"], 0.4), now
    assert now["system_prompt"].endswith("full sentences.\n") and now["description"] == "Keeps the ledger"
    name.fill("taken")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".fault").filter(has_text=re.compile("taken|already"))).to_be_visible()
    page.get_by_role("button", name="Discard").click()
    expect(name).to_have_value("ledger")
    page.get_by_role("button", name="Remove money").click()
    name.fill("bookkeeper")
    save(page)
    expect(page.get_by_role("heading", name=re.compile("bookkeeper"), level=1)).to_be_visible()
    assert agent_of(stage, agent)["tags"] == ["books"]
    page.get_by_label("Mode", exact=True).select_option("Stable")
    save(page)
    assert agent_of(stage, agent)["mode"] == "Stable"


def case_settings_are_chosen_from_what_there_is(stage):
    """Tools and models are chosen from lists with descriptions; what the agent may do is said in words, and follows the choice."""
    agent = stage.daemon.agent("ledger", 'description = "x"\n[capabilities]\ntools = ["file_*", "system_time"]\nnetwork = ["example.com"]\n')
    page = stage.open(f"#/agent/{agent}/settings")
    may = page.get_by_role("region", name="What this agent may do")
    expect(may).to_contain_text("Read and change files in its own workspace")
    expect(may).to_contain_text("It cannot run commands, create agents or reach the internet.")
    page.get_by_role("button", name="Choose tools").click()
    dialog = page.get_by_role("dialog", name="Tools")
    row = lambda name: dialog.locator("label").filter(has=page.locator("code", has_text=re.compile(f"^{name}$")))
    # What a pattern covers is chosen by it.
    expect(row("file_read").get_by_role("checkbox")).to_be_checked()
    expect(row("file_read").get_by_role("checkbox")).to_be_disabled()
    expect(row("file_read")).to_contain_text("by file_*")
    expect(row("system_time").get_by_role("checkbox")).to_be_checked()
    access.check(page, "the choice of tools")
    stage.shoot("agent-choose-tools")
    dialog.get_by_role("searchbox").fill("web_fetch")
    expect(dialog.get_by_role("checkbox")).to_have_count(1)
    expect(row("web_fetch").locator("small")).not_to_be_empty()
    page.keyboard.press("Enter")
    expect(row("web_fetch").get_by_role("checkbox")).to_be_checked()
    dialog.get_by_role("searchbox").fill("")
    dialog.get_by_role("button", name="Only chosen").click()
    expect(row("agent_send")).to_have_count(0)
    dialog.get_by_role("button", name="Use these").click()
    expect(may).to_contain_text("Open web pages, on example.com only")
    expect(may).to_contain_text("It cannot run commands or create agents.")
    # Escape leaves everything as it was.
    page.locator("summary", has_text="Exceptions").click()
    page.get_by_role("button", name="Choose blocked tools").click()
    row = lambda name: page.get_by_role("dialog", name="Blocked tools").locator("label").filter(has=page.locator("code", has_text=re.compile(f"^{name}$")))
    row("file_write").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Remove file_write")).to_have_count(0)
    page.get_by_role("button", name="Choose skills").click()
    expect(page.get_by_role("dialog", name="Skills")).to_contain_text("No skills are installed.")
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("^Model: Default")).click()
    models = page.get_by_role("dialog", name="Model of ledger")
    models.get_by_label("Search models").fill("offline")
    page.keyboard.press("Enter")
    models.get_by_role("button", name="Use this model").click()
    expect(page.get_by_role("button", name="Model: offline model")).to_be_focused()
    expect(page.locator(".save-bar")).to_contain_text("3 changes: provider, model, tools")
    # What it may reach is changed like the rest.
    rights = page.get_by_role("region", name="Permissions settings")
    rights.get_by_label("Commands", exact=True).fill("git")
    page.keyboard.press("Enter")
    rights.get_by_role("switch", name="Create agents").click()
    # So are its limits, beside what was spent of them.
    budget = page.get_by_role("region", name="Budget settings")
    expect(budget).to_contain_text("Spent today: $")
    budget.get_by_label("Daily limit (USD)").fill("5")
    expect(page.locator(".save-bar")).to_contain_text("6 changes")
    save(page)
    now = agent_of(stage, agent)
    assert now["capabilities"]["tools"] == ["file_*", "system_time", "web_fetch"] and now["model"]["provider"] == "builtin", now
    assert (now["capabilities"]["shell"], now["capabilities"]["network"], now["capabilities"]["agent_spawn"]) == (["git"], ["example.com"], True), now
    assert stage.daemon.call("GET", f"/api/budget/agents/{agent}")["daily_limit_usd"] == 5
    expect(budget.get_by_label("Daily limit (USD)")).to_have_value("5")


@config('[exec_policy]\nmode = "allowlist"\nallowed_commands = ["git", "cargo"]\n')
def case_rights_are_said_before_an_agent_is_created(stage):
    """Another template, another profile: what the new agent could do is said beside the form."""
    page = stage.open()
    page.get_by_role("button", name="New agent").first.click()
    dialog = page.get_by_role("dialog", name="New agent")
    may = dialog.get_by_role("region", name="What this agent may do")
    expect(may).to_contain_text("Read and change files in its own workspace")
    expect(may).to_contain_text("It cannot run commands, create agents or reach the internet.")
    dialog.get_by_role("option").filter(has_text="coder").first.click()
    expect(may).to_contain_text("Run the commands git and cargo")
    expect(may).to_contain_text("Spend at most $")
    access.check(page, "a new agent with its rights")
    stage.shoot("agent-rights")
    dialog.get_by_label("Tools", exact=True).select_option("No tools")
    expect(may).not_to_contain_text("Run")


def case_an_agent_has_its_own_schedules_triggers_and_files(stage):
    agent = stage.daemon.agent("ledger", MANIFEST)
    other = stage.daemon.agent("other")
    stage.daemon.call("POST", "/api/schedules", {"agent_id": other, "cron": "@daily", "prompt": "not mine"})
    page = stage.open(f"#/agent/{agent}/automation")
    schedules = page.get_by_role("region", name="Schedules", exact=True)
    expect(schedules.get_by_role("heading", name="No schedules yet")).to_be_visible()
    access.check(page, "an agent without automation")
    schedules.get_by_role("button", name="New schedule").first.click()
    dialog = page.get_by_role("dialog", name="New schedule")
    expect(dialog.get_by_label("Agent", exact=True)).to_have_value("ledger")
    dialog.get_by_label("Prompt").fill("Close the books")
    dialog.get_by_role("button", name="Create").click()
    rows = schedules.get_by_role("table", name="Schedules").get_by_role("row")
    expect(rows.filter(has_text="Close the books")).to_contain_text("Every day at 09:00")
    expect(rows.filter(has_text="not mine")).to_have_count(0)
    triggers = page.get_by_role("region", name="Triggers", exact=True)
    triggers.get_by_role("button", name="A turn failed").click()
    expect(page.get_by_role("dialog", name="New trigger").get_by_label("Send to")).to_have_value("ledger")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(triggers.get_by_role("table", name="Triggers")).to_contain_text("Turn failed")
    access.check(page, "the automation of an agent")
    page.get_by_role("link", name="Files", exact=True).click()
    expect(page.get_by_role("heading", name="No files yet")).to_be_visible()
    page.get_by_label("Files to add").set_input_files({"name": "notes.md", "mimeType": "text/markdown", "buffer": b"# Plan"})
    file = page.get_by_role("table", name="Files").get_by_role("row").filter(has_text="notes.md")
    expect(file).to_contain_text("6 B")
    access.check(page, "the files of an agent")
    file.get_by_role("button", name="notes.md", exact=True).click()
    expect(page.get_by_role("dialog", name="notes.md")).to_contain_text("# Plan")
    page.keyboard.press("Escape")
    file.get_by_role("button", name="More for notes.md").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No files yet")).to_be_visible()


def case_settings_as_toml(stage):
    """The text is checked as it is typed; what an agent has from its creation on is refused before it is sent."""
    stage.expect_refusals(400)
    agent = stage.daemon.agent("ledger", MANIFEST)
    page = stage.open(f"#/agent/{agent}/settings")
    page.get_by_role("button", name="TOML").click()
    area = page.get_by_label("Manifest", exact=True)
    expect(area).to_have_value(re.compile("Keeps the ledger"))
    text = area.input_value()
    bar = page.locator(".save-bar")
    area.fill(text.replace("Keeps the ledger", "Keeps all ledgers").replace("[capabilities]", 'x = \n[capabilities]'))
    expect(page.locator(".fault").filter(has_text="line").or_(page.locator(".fault").filter(has_text="Line")).first).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    area.fill(text.replace("[capabilities]", '[capabilities]\nmemory_read = ["none"]\nnetwork = ["example.com"]'))
    expect(bar).to_contain_text("capabilities.memory_read cannot be changed")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    bar.get_by_role("button", name="Create a new agent").click()
    dialog = page.get_by_role("dialog", name="New agent")
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("ledger-copy")
    expect(dialog.get_by_role("status")).to_contain_text("Valid.")
    dialog.get_by_role("button", name="Cancel").click()
    area.fill(text.replace("Keeps the ledger", "Keeps all ledgers"))
    expect(bar).to_contain_text("1 change: description")
    bar.get_by_text("Show the difference").click()
    expect(bar.locator(".diff-line.added")).to_contain_text("Keeps all ledgers")
    access.check(page, "the settings of an agent as TOML")
    save(page)
    assert agent_of(stage, agent)["description"] == "Keeps all ledgers"
    expect(area).to_have_value(re.compile("Keeps all ledgers"))
    # What was typed is not lost unasked.
    area.fill(text + "# more\n")
    page.get_by_role("button", name="Form", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(page.get_by_label("Description", exact=True)).to_have_value("Keeps all ledgers")


def case_a_chat_beside_the_settings(stage):
    stage.model.respond = calls_the_time
    agent = stage.daemon.agent("ledger", MANIFEST)
    page = stage.open(f"#/agent/{agent}/settings")
    trial = page.get_by_role("complementary", name="Test chat")
    trial.get_by_label("Test message").fill("what time is it?")
    page.keyboard.press("Enter")
    expect(trial.locator(".md strong")).to_have_text("noon")
    expect(trial.locator("details.tool")).to_contain_text("system_time")
    expect(page.get_by_label("Name", exact=True)).to_have_value("ledger")
    sessions = stage.daemon.call("GET", f"/api/agents/{agent}/sessions")["sessions"]
    assert len(sessions) == 2 and sum(session["message_count"] for session in sessions if session["current"]) == 0, sessions
    trial.get_by_role("button", name="New").click()
    expect(trial.locator("article")).to_have_count(0)
    phone = stage.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    stage.open(f"#/agent/{agent}/settings", phone)
    phone.get_by_role("button", name="Try it").click()
    expect(phone.get_by_label("Test message")).to_be_focused()
    access.check(phone, "the test chat on a phone")
    phone.get_by_role("button", name="Close the test chat").click()
    expect(phone.get_by_role("button", name="Try it")).to_be_focused()


def case_traces(stage):
    """A run as a waterfall: its steps with their inputs and results, tokens, cost and context; and the run again."""
    stage.model.respond = calls_the_time
    agent = stage.daemon.agent("ledger", MANIFEST)
    chat_page = stage.open(f"#/chat/{agent}")
    chat.say(chat_page, "what time is it?")
    chat.settled(chat_page)
    chat.turns(chat_page).last.get_by_role("link", name="Show the trace").click()
    page = chat_page
    steps = page.get_by_role("list", name="Steps of the run").get_by_role("button")
    expect(steps).to_have_count(4)
    expect(steps.nth(0)).to_contain_text("Prompt")
    detail = page.get_by_role("region", name="Selected step")
    expect(detail).to_contain_text("what time is it?")
    expect(detail).to_contain_text("You keep the ledger.")
    steps.nth(2).click()
    expect(steps.nth(2)).to_have_attribute("aria-pressed", "true")
    expect(detail.get_by_role("heading", name="system_time")).to_be_visible()
    expect(detail).to_contain_text("Input")
    steps.nth(3).click()
    expect(detail.locator(".md strong")).to_have_text("noon")
    expect(detail).to_contain_text("120 in")
    expect(page.locator(".stat").filter(has_text="Tool calls")).to_contain_text("1")
    expect(page.get_by_role("region", name="Context window")).to_contain_text("120")
    access.check(page, "a trace")
    page.get_by_role("button", name="Run again").click()
    expect(page.locator(".stat").filter(has_text="Model calls")).to_contain_text("same as before")
    expect(steps).to_have_count(4)
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("table", name="Runs").get_by_role("row")).to_have_count(3)
    access.check(page, "the runs of an agent")


def case_runs_have_the_name_of_their_message(stage):
    agent = stage.daemon.agent("ledger", MANIFEST)
    for text in ["count the apples", "count the pears"]:
        stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": text})
    page = stage.open(f"#/agent/{agent}/runs")
    rows = page.get_by_role("table", name="Runs").get_by_role("row")
    expect(rows.filter(has_text="count the pears")).to_contain_text("in “count the apples”")
    expect(rows.filter(has_text="count the apples")).to_have_count(2)
    expect(rows.last).not_to_contain_text("tool")
    page.get_by_role("link", name="Overview", exact=True).last.click()
    recent = page.get_by_role("region", name="Recent runs").get_by_role("listitem")
    expect(recent.first).to_contain_text("count the pears")
    expect(recent.last).to_contain_text("count the apples")
    access.check(page, "the runs of the overview")


@config('[approval]\nrequire_approval = ["file_write"]\n')
def case_an_open_run_says_what_it_waits_for(stage):
    """Message, steps so far and the decision stand on the page of a run that has not ended."""
    stage.model.respond = lambda messages, body: "Written." if messages[-1]["role"] == "tool" else {"calls": [("system_time", {}), ("file_write", {"path": "notes.md", "content": "# Plan\n- new\n"})]}
    agent = stage.daemon.agent("ledger", MANIFEST)
    threading.Thread(target=stage.daemon.call, args=("POST", f"/api/agents/{agent}/message", {"message": "write the plan"}), daemon=True).start()
    until("it waits", lambda: stage.daemon.call("GET", "/api/approvals?status=pending")["total"] == 1)
    [run] = stage.daemon.call("GET", f"/api/agents/{agent}/traces")["running"]
    page = stage.open(f"#/agent/{agent}/runs/{run['turn_id']}?session={run['session_id']}")
    so_far = page.get_by_role("region", name="Run so far")
    expect(so_far).to_contain_text("write the plan")
    expect(so_far.locator("details.tool").first).to_contain_text("system_time")
    expect(page.get_by_text("waiting for approval")).to_be_visible()
    expect(page.get_by_role("link", name="Open in chat")).to_have_attribute("href", f"#/chat/{agent}/{run['session_id']}")
    card = so_far.get_by_role("region", name="Approval of file_write")
    expect(card).to_contain_text("ledger wants to write a file")
    expect(card).to_contain_text("notes.md is a new file")
    access.check(page, "an open run")
    stage.shoot("agent-open-run")
    card.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("list", name="Steps of the run")).to_contain_text("file_write")


@config("[queue.concurrency]\nprovider_calls = 1\n")
def case_waiting_is_a_step_of_a_trace(stage):
    """A turn that waits for a slot of its provider shows how long, and why."""
    gate = Gate()
    stage.model.respond = lambda messages, body: {"text": ["slow"], "gate": gate} if "slow" in last_text(messages) else "quick"
    agents = [stage.daemon.agent("first"), stage.daemon.agent("second")]
    calls = [threading.Thread(target=stage.daemon.call, args=("POST", f"/api/agents/{agent}/message", {"message": text})) for agent, text in zip(agents, ["slow", "now"])]
    calls[0].start()
    until("the first call is out", lambda: stage.model.requests)
    calls[1].start()
    until("the second turn waits", lambda: stage.daemon.call("GET", f"/api/agents/{agents[1]}/traces").get("running"))
    time.sleep(0.3)
    gate.open()
    for call in calls:
        call.join()
    trace = stage.daemon.call("GET", f"/api/agents/{agents[1]}/traces")["traces"][0]
    page = stage.open(f"#/agent/{agents[1]}/runs/{trace['turn_id']}?session={trace['session_id']}")
    steps = page.get_by_role("list", name="Steps of the run").get_by_role("button")
    expect(steps).to_have_count(3)
    expect(steps.nth(1)).to_contain_text("Waiting")
    expect(steps.nth(2)).to_contain_text("openai/echo-1")
    steps.nth(1).click()
    expect(page.get_by_role("region", name="Selected step")).to_contain_text("a free slot of the provider")
    access.check(page, "a trace with waiting")
    stage.shoot("agent-trace-waiting")
    first = stage.daemon.call("GET", f"/api/agents/{agents[0]}/traces")["traces"][0]
    stage.open(f"#/agent/{agents[0]}/runs/{first['turn_id']}?session={first['session_id']}")
    expect(steps).to_have_count(2)


def case_pictures(stage):
    stage.model.respond = calls_the_time
    agent = stage.daemon.agent("ledger", MANIFEST + 'network = ["api.example.com"]\n')
    for text in ["what time is it?", "hello", "and the time now?"]:
        stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": text})
    stage.daemon.call("POST", "/api/cron/jobs", {"name": "close", "agent_id": agent, "schedule": "@daily", "prompt": "close the books"})
    trace = stage.daemon.call("GET", f"/api/agents/{agent}/traces")["traces"][0]
    stage.shoot_all("agent", f"#/agent/{agent}", lambda page: expect(page.get_by_role("region", name="Recent runs").get_by_role("link").nth(1)).to_be_visible())

    def changed(page):
        page.get_by_label("Description", exact=True).fill("Keeps all ledgers")
        page.locator(".save-bar").get_by_text("Show the difference").click()

    def toml(page):
        page.get_by_role("button", name="TOML").click()
        expect(page.get_by_label("Manifest", exact=True)).to_be_visible()

    stage.shoot_all("agent-settings", f"#/agent/{agent}/settings", changed)
    stage.shoot_all("agent-toml", f"#/agent/{agent}/settings", toml)
    stage.shoot_all("agent-runs", f"#/agent/{agent}/runs", lambda page: expect(page.get_by_role("table", name="Runs").get_by_role("row")).to_have_count(4))

    def step(page):
        page.get_by_role("list", name="Steps of the run").get_by_role("button").nth(2).click()

    stage.shoot_all("agent-trace", f"#/agent/{agent}/runs/{trace['turn_id']}?session={trace['session_id']}", step)


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
