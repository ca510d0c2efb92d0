"""The first minutes and what is there on every page: setting up a model, the palette, pending approvals, a daemon that hangs."""

import os
import re
import signal
import sys

from playwright.sync_api import expect

import access
import chat
import stage as stages
from stage import config, last_text, offline, until

GROQ = '[web.fetch]\nssrf_allowed_hosts = ["127.0.0.1"]\n[providers.groq]\nbase_url = "{model}"\n'


def calls_the_time(messages, body):
    """A model that asks for the time, and says what the tool said."""
    if messages[-1]["role"] == "tool":
        return f"The clock says {last_text(messages)}"
    return {"calls": [("system_time", {})]} if "time" in last_text(messages) else "ok"


@offline
@config(GROQ)
def case_a_model_is_offered_until_one_is_set_up(stage):
    """A key that failed and a message to the offline model are model calls; the ways to set one up are still there."""
    stage.expect_refusals(502, 400, 401, 409)
    page = stage.open()
    setup = page.get_by_role("region", name="Set up a model")
    setup.get_by_role("button", name="Paste an API key").click()
    dialog = page.get_by_role("dialog", name="Connect a model provider")
    stage.model.respond = lambda messages, body: {"status": 401}
    dialog.get_by_label("API key").fill("gsk_wrong")
    dialog.get_by_role("button", name="Connect").click()
    expect(dialog.locator(".fault").filter(has_text=re.compile("key|401", re.I)).first).to_be_visible()
    page.keyboard.press("Escape")
    setup.get_by_role("button", name="Try it offline").click()
    chat.settled(page)
    until("the calls are counted", lambda: sum(day["request_count"] for day in stage.daemon.call("GET", "/api/usage/daily?days=30")["days"]) > 0)
    stage.open("")
    page.reload()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    expect(setup).to_contain_text("No language model is set up.")
    expect(setup.get_by_role("button")).to_have_count(3)
    access.check(page, "the overview without a model")
    stage.shoot("product-overview-first")
    stage.model.respond = lambda messages, body: "ok"
    setup.get_by_role("button", name="Paste an API key").click()
    dialog.get_by_label("API key").fill("gsk_right")
    dialog.get_by_role("button", name="Connect").click()
    page.get_by_role("dialog", name="Choose a model").get_by_role("button", name="Start chatting").click()
    expect(page.locator(".chat-head .note")).to_contain_text("groq")
    page.get_by_role("link", name="Overview", exact=True).click()
    expect(page.locator(".stat").first).to_be_visible()
    expect(setup).to_have_count(0)


@offline
@config(GROQ)
def case_a_key_is_tested_a_model_chosen_and_a_tool_runs(stage):
    """From the first page to an answer with a tool: a wrong key is not kept, a right one is tested before it counts."""
    stage.expect_refusals(502, 400, 401, 409)
    page = stage.open()
    setup = page.get_by_role("region", name="Set up a model")
    expect(setup).to_contain_text("No language model is set up.")
    expect(setup.get_by_role("button", name="Try it offline")).to_be_visible()
    access.check(page, "the first page")
    stage.shoot("product-first")
    setup.get_by_role("button", name="Paste an API key").click()
    dialog = page.get_by_role("dialog", name="Connect a model provider")
    stage.model.respond = lambda messages, body: {"status": 401}
    dialog.get_by_label("API key").fill("gsk_wrong")
    expect(dialog.get_by_label("Provider")).to_have_value("groq")
    access.check(page, "the form of a key")
    dialog.get_by_role("button", name="Connect").click()
    expect(dialog.locator(".fault").filter(has_text=re.compile("key|401", re.I)).first).to_be_visible()
    until("the key is gone", lambda: provider(stage, "groq")["auth_status"] == "not_configured")
    stage.model.respond = calls_the_time
    dialog.get_by_label("API key").fill("gsk_right")
    dialog.get_by_role("button", name="Connect").click()
    models = page.get_by_role("dialog", name="Choose a model")
    expect(models).to_contain_text("The key works.")
    # The best one that can use tools is chosen, and each says what it reads and costs.
    catalog = stage.daemon.call("GET", "/api/models?provider=groq&limit=200")["models"]
    tiers = ["frontier", "smart", "fast"]
    best = min((model for model in catalog if model["supports_tools"]), key=lambda model: tiers.index(model["tier"]))
    expect(models.get_by_label("Default model")).to_have_value(best["id"])
    expect(models.get_by_label("Default model").locator("option:checked")).to_have_text(re.compile(r"context · \$.* / \$.* per 1M"))
    access.check(page, "the choice of a model")
    stage.shoot("product-model")
    models.get_by_role("button", name="Start chatting").click()
    expect(page.locator(".chat-head .note")).to_contain_text("groq")
    expect(setup).to_be_hidden()
    page.get_by_role("list", name="Suggestions").get_by_role("button", name="What time is it in Tokyo?").click()
    chat.settled(page)
    expect(chat.turns(page).last).to_contain_text("The clock says")
    expect(chat.turns(page).last.locator("details.tool summary")).to_contain_text("system_time")
    assert stage.daemon.call("GET", "/api/status")["default_provider"] == "groq"


@offline
@config('[web.fetch]\nssrf_allowed_hosts = ["127.0.0.1"]\n[providers.groq]\nbase_url = "http://127.0.0.1:9/v1"\n')
def case_a_key_is_saved_without_a_test_where_nobody_answers(stage):
    """An endpoint that is not reached is said in plain words, and the key can be kept all the same."""
    stage.expect_refusals(502)
    page = stage.open()
    page.get_by_role("region", name="Set up a model").get_by_role("button", name="Paste an API key").click()
    dialog = page.get_by_role("dialog", name="Connect a model provider")
    expect(dialog.get_by_role("button", name="Save without testing")).to_be_hidden()
    dialog.get_by_label("API key").fill("gsk_x")
    dialog.get_by_role("button", name="Connect").click()
    expect(dialog.locator(".fault").filter(has_text="Could not reach Groq (127.0.0.1): The connection was refused.")).to_be_visible()
    assert provider(stage, "groq")["auth_status"] == "not_configured"
    access.check(page, "a key that could not be tested")
    stage.shoot("product-key-untested")
    dialog.get_by_role("button", name="Save without testing").click()
    models = page.get_by_role("dialog", name="Choose a model")
    expect(models).to_contain_text("was not tested")
    assert provider(stage, "groq")["auth_status"] == "configured"


@offline
def case_the_sample_runs_at_once(stage):
    """Trying it offline from the overview shows an answer with a tool, whose question is the title of the session."""
    page = stage.open("#/home")
    page.get_by_role("region", name="Set up a model").get_by_role("button", name="Try it offline").click()
    chat.settled(page)
    expect(chat.turns(page).last.locator(".said")).to_contain_text("What time is it?")
    expect(chat.turns(page).last.locator("details.tool summary")).to_contain_text("system_time")
    expect(page.get_by_role("listbox", name="Sessions").get_by_role("option").first).to_contain_text("What time is it?")


def provider(stage, name):
    return next(item for item in stage.daemon.call("GET", "/api/providers")["providers"] if item["name"] == name)


@offline
@config('[providers.ollama]\nbase_url = "{scripted}"\n')
def case_a_local_runtime_is_found_or_its_absence_explained(stage):
    stage.expect_refusals(400, 404, 502)
    page = stage.open()
    page.get_by_role("button", name="Use a local model").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("ollama pull")
    dialog.get_by_role("button", name="Close").last.click()
    stage.scripted.answers = {"/api/version": (200, {"version": "0.12.3"}), "/api/tags": (200, {"models": [{"name": "llama3.2:3b", "model": "llama3.2:3b"}]}),
                              "/api/chat": (200, {"model": "llama3.2:3b", "message": {"role": "assistant", "content": "ok"}, "done": True, "prompt_eval_count": 1, "eval_count": 1})}
    page.get_by_role("button", name="Use a local model").click()
    expect(dialog.get_by_label("Model")).to_contain_text("llama3.2:3b (Ollama)")
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".chat-head .note")).to_contain_text("llama3.2:3b")
    status = stage.daemon.call("GET", "/api/status")
    assert (status["default_provider"], status["default_model"]) == ("ollama", "llama3.2:3b")


def case_the_palette_finds_agents_messages_pages_and_actions(stage):
    agent = stage.daemon.agent("quartermaster")
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "the walrus eats at noon"})
    page = stage.open("#/settings")
    expect(page.locator(".provider").first).to_be_visible()
    palette = page.get_by_role("dialog", name="Command palette")
    box = palette.get_by_role("combobox", name="Search everything")
    options = palette.get_by_role("option")

    def search(text):
        page.keyboard.press("Control+k")
        expect(box).to_be_focused()
        page.keyboard.type(text)

    search("quarter")
    expect(options.first).to_contain_text("quartermaster")
    access.check(page, "the palette")
    stage.shoot("product-palette")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="quartermaster", level=1)).to_be_visible()
    search("walrus")
    expect(options.filter(has_text="walrus").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(chat.turns(page).first).to_contain_text("the walrus eats at noon")
    assert agent in page.url
    search("budgets")
    expect(options.first).to_contain_text("Spending")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Spending", level=1)).to_be_visible()
    # Nothing fits; Escape closes, and the focus is back where it was.
    button = page.get_by_role("button", name="Search everything")
    button.focus()
    page.keyboard.press("Enter")
    expect(box).to_be_focused()
    page.keyboard.type("no such thing at all")
    expect(palette).to_contain_text("No results.")
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    expect(button).to_be_focused()
    search("new agent")
    expect(options.first).to_contain_text("New agent")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="New agent")).to_be_visible()
    # Back closes what was opened over the page.
    page.go_back()
    expect(page.get_by_role("dialog", name="New agent")).to_be_hidden()


def case_a_source_that_fails_does_not_empty_the_palette(stage):
    """Busy, refused or broken: what the other sources find is still offered."""
    stage.expect_refusals(429, 503)
    stage.allowed.append("Failed to load resource")
    stage.daemon.agent("quartermaster")
    page = stage.open("#/chat")
    for path, status in [("**/api/query*", 429), ("**/api/models", 503)]:
        page.route(path, lambda route, _, status=status: route.fulfill(status=status, content_type="application/json", body='{"error":"busy"}'))
    page.route("**/api/sessions/search*", lambda route: route.abort())
    expect(chat.prompt(page)).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search everything")).to_be_focused()
    page.keyboard.type("quarter")
    expect(page.get_by_role("dialog", name="Command palette").get_by_role("option").filter(has_text="quartermaster").first).to_be_visible()


def case_the_palette_finds_what_is_automated_and_makes_new(stage):
    """Schedules, triggers, workflows, tasks and models by their names; and the forms of new ones."""
    agent = stage.daemon.agent("worker")
    call = stage.daemon.call
    call("POST", "/api/cron/jobs", {"name": "heartbeat", "agent_id": agent, "schedule": "@daily", "prompt": "x"})
    call("POST", "/api/triggers", {"agent_id": agent, "pattern": {"custom": {"event_type": "deployed"}}, "prompt_template": "x"})
    workflow = call("POST", "/api/workflows", {"name": "Weekly report", "steps": [{"name": "go", "agent_name": "worker", "prompt": "x"}]})["workflow_id"]
    call("POST", "/api/tasks", {"title": "Publish the post", "description": "x"})
    call("POST", f"/api/agents/{agent}/message", {"message": "Please look at the build, it passes on all platforms"})
    page = stage.open("#/world")
    expect(page.get_by_role("heading", name="Live", level=1)).to_be_visible()
    palette = page.get_by_role("dialog", name="Command palette")
    options = palette.get_by_role("option")

    def search(text):
        page.keyboard.press("Control+k")
        expect(palette).to_be_visible()
        page.keyboard.type(text)

    search("heartb")
    expect(options).to_have_count(1)
    expect(palette.get_by_role("status")).to_have_text("1 result")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Filter")).to_have_value("heartbeat")
    search("deployed")
    expect(options.filter(has_text="deployed").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Triggers", level=1)).to_be_visible()
    search("weekly")
    expect(options.first).to_contain_text("Weekly report")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**#/automation/workflows/{workflow}")
    search("publish the")
    expect(options.first).to_contain_text("Publish the post")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Publish the post")).to_be_visible()
    page.keyboard.press("Escape")
    search("gpt-4o")
    expect(options.first).to_contain_text(re.compile("gpt-4o", re.I))
    page.keyboard.press("Escape")
    search("the build")
    expect(options.first).to_contain_text("Please look at the build")
    page.keyboard.press("Escape")
    for words, name in [("new sched", "New schedule"), ("new trig", "New trigger"), ("new task", "New task")]:
        search(words)
        expect(options.first).to_contain_text(name)
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog", name=name)).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name=name)).to_have_count(0)
    search("new wo")
    expect(options.first).to_contain_text("New workflow")
    page.keyboard.press("Enter")
    page.wait_for_url("**#/automation/workflows/new")


@config('[approval]\nrequire_approval = ["memory_store"]\n')
def case_pending_approvals_are_marked_on_every_page(stage):
    stage.model.respond = lambda messages, body: "done" if messages[-1]["role"] == "tool" else {"calls": [("memory_store", {"key": "k", "value": "v"})]}
    agent = stage.daemon.agent("ada", '[capabilities]\ntools = ["*"]\nmemory_write = ["*"]\n')
    page = stage.open("#/world")
    mark = page.locator(".rail-inbox .rail-badge")
    expect(page.get_by_role("heading", name="Live", level=1)).to_be_visible()
    expect(mark).to_be_hidden()
    chat_page = stage.new_page()
    stage.open(f"#/chat/{agent}", chat_page)
    chat.say(chat_page, "go")
    expect(mark).to_have_text(re.compile("^1"))
    expect(page).to_have_title(re.compile(r"^\(1\) "))
    page.get_by_role("link", name="Inbox, 1 item needs you").click()
    item = page.get_by_role("region", name="Approvals").get_by_role("listitem")
    expect(item).to_contain_text("memory_store")
    expect(item.get_by_role("link", name="ada", exact=True)).to_be_visible()
    item.get_by_role("button", name="Approve").click()
    expect(mark).to_be_hidden()
    expect(page).to_have_title(re.compile(r"^[^(]"))


def case_a_daemon_that_hangs_is_noticed(stage):
    page = stage.open("#/world")
    health = page.locator(".health")
    expect(health).to_have_text("online")
    os.kill(stage.daemon.process.pid, signal.SIGSTOP)
    try:
        expect(health).to_have_text("not responding")
    finally:
        os.kill(stage.daemon.process.pid, signal.SIGCONT)
    expect(health).to_have_text("online")


def case_events_are_sentences_and_names_stay_those_of_agents(stage):
    agent = stage.daemon.agent("bruno")
    job = stage.daemon.call("POST", "/api/cron/jobs", {"name": "heartbeat", "agent_id": agent, "schedule": "@hourly", "prompt": "beat"})["job_id"]
    page = stage.open("#/world/events")
    table = page.get_by_role("table", name="Events, newest first")
    stage.daemon.call("POST", f"/api/cron/jobs/{job}/run")
    expect(table.get_by_role("row").filter(has_text="Cron job “heartbeat” fired")).to_contain_text("bruno")
    expect(table.get_by_role("row").filter(has_text="Answered (")).to_contain_text("bruno")
    assert "{" not in table.inner_text(), table.inner_text()
    phone = stage.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    stage.open("#/world/events", phone)
    expect(phone.get_by_role("table", name="Events, newest first")).to_contain_text("Cron job “heartbeat” fired")
    stage.shoot("product-events-phone", phone)


def case_a_type_is_found_by_its_name_and_a_copy_has_a_name_of_its_own(stage):
    stage.daemon.agent("zebra")
    page = stage.open()
    page.get_by_role("button", name="New agent").click()
    dialog = page.get_by_role("dialog", name="New agent")
    source = dialog.get_by_role("group", name="Start from")
    expect(source.get_by_role("button", name="Templates")).to_have_attribute("aria-pressed", "true")
    expect(dialog.get_by_role("listbox", name="Agents to copy")).to_be_hidden()
    stage.shoot("product-new-agent")
    dialog.get_by_label("Search templates and agents").fill("zeb")
    expect(dialog.get_by_role("listbox", name="Agent types").get_by_role("option")).to_have_count(0)
    source.get_by_role("button", name="My agents").click()
    found = dialog.get_by_role("listbox", name="Agents to copy").get_by_role("option")
    expect(found).to_have_count(1)
    found.click()
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("zebra-copy")
    dialog.get_by_role("button", name="TOML").click()
    expect(dialog.get_by_label("Manifest", exact=True)).to_have_value(re.compile('name = "zebra-copy"'))
    access.check(page, "an agent that is copied")
    expect(dialog.get_by_role("status")).to_contain_text("Valid.")
    dialog.get_by_label("Name", exact=True).fill("zebra")
    expect(dialog.locator(".fault").filter(has_text="already exists")).to_be_visible()
    expect(dialog.get_by_role("status")).to_have_text("")


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
