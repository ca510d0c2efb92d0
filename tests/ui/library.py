"""Skills, hands, extensions and plugins in the browser: what is installed, what each needs and may do, and how they are added and ended."""

import json
import pathlib
import sys

from playwright.sync_api import expect

import access
import stage as stages
from connections import FULL, MARKUP, dialog, entry, fact, toast
from stage import config, until

SKILL = """---
name: {name}
description: {description}
version: 1.2.0
author: Ada
tags: [writing, markdown]
{rest}---
# Instructions

{text}
"""

HAND = '''
id = "desk"
name = "Front desk"
description = "Answers visitors and keeps a list of them."
category = "communication"
icon = "🛎"
tools = ["memory_store", "memory_recall", "a_tool_of_tomorrow"]

[[requires]]
key = "bell"
label = "A bell"
requirement_type = "binary"
check_value = "no-such-bell"
description = "Rings when somebody comes."

[[settings]]
key = "tone"
label = "Tone"
description = "How it speaks."
setting_type = "select"
default = "warm"
[[settings.options]]
value = "warm"
label = "Warm"
[[settings.options]]
value = "brief"
label = "Brief"

[[settings]]
key = "greets"
label = "Greet first"
setting_type = "toggle"
default = "true"

[agent]
name = "desk-agent"
description = "Speaks with visitors."
module = "builtin:chat"
provider = "default"
model = "default"
system_prompt = "You welcome visitors."

[dashboard]
[[dashboard.metrics]]
label = "Visitors"
memory_key = "desk_visitors"
format = "number"
'''


def write_skill(stage, name, description, text="Write clearly.", rest="", files=()):
    """A skill in the daemon's folder; it is there after a reload."""
    folder = pathlib.Path(stage.daemon.home, "skills", name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(SKILL.format(name=name, description=json.dumps(description), text=text, rest=rest))
    for path, content in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


def fill_skills(stage):
    write_skill(stage, "release-notes", "Writes release notes from a list of changes.", files=[("references/style.md", f"Short sentences. {MARKUP}")])
    write_skill(stage, "bell", MARKUP, rest='metadata: {"openclaw": {"requires": {"bins": ["no-such-bell"]}}}\n')
    stage.daemon.call("POST", "/api/skills/reload", {})


def cards(page, name):
    return page.get_by_role("list", name=name, exact=True).locator("> li")


def case_skills(stage):
    """Skills are listed, searched, read, created and removed; what a skill lacks is said; markup stays text."""
    stage.expect_refusals(400, 404, 409)
    page = stage.open("#/library")
    expect(page.get_by_role("heading", name="No skills yet")).to_be_visible()
    access.check(page, "no skills")
    fill_skills(stage)
    page.get_by_role("button", name="Reload").click()
    toast(page, "2 skills read")
    expect(cards(page, "Skills")).to_have_count(2)
    expect(cards(page, "Skills").filter(has_text="bell")).to_contain_text("needs something")
    assert page.locator(".page-library img").count() == 0 and page.title() != "obeyed"
    access.check(page, "skills")
    page.get_by_label("Search skills").fill("release")
    expect(cards(page, "Skills")).to_have_count(1)
    page.get_by_role("link", name="release-notes").click()
    expect(page.get_by_role("heading", name="release-notes")).to_be_focused()
    expect(fact(page, "Version")).to_have_text("1.2.0")
    expect(fact(page, "Author")).to_have_text("Ada")
    expect(page.get_by_role("region", name="Permissions")).to_contain_text("runs no code of its own")
    expect(page.get_by_role("region", name="Instructions").first).to_contain_text("Write clearly.")
    page.get_by_role("button", name="references/style.md").click()
    expect(dialog(page)).to_contain_text(f"Short sentences. {MARKUP}")
    dialog(page).locator("footer").get_by_role("button", name="Close").click()
    access.check(page, "a skill")
    stage.open("#/library/skills/bell", page)
    expect(page.get_by_role("region", name="Needs")).to_contain_text("no-such-bell")
    assert page.locator(".page-library img").count() == 0 and page.title() != "obeyed"

    stage.open("#/library", page)
    page.get_by_label("Search skills").fill("")
    page.get_by_role("button", name="Create").click()
    form = dialog(page)
    form.get_by_label("Name").fill("Not a name")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Name").fill("haiku")
    form.get_by_label("Description").fill("Writes haiku.")
    form.get_by_label("Instructions").fill("Five, seven and five syllables.")
    form.get_by_label("Tags").fill("poetry")
    access.check(page, "the form of a skill")
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="haiku")).to_be_visible()
    expect(page.get_by_role("region", name="Instructions").first).to_contain_text("seven")
    page.get_by_role("button", name="Remove").click()
    form.get_by_role("button", name="Remove").click()
    toast(page, "Removed")
    expect(cards(page, "Skills")).to_have_count(2)
    page.get_by_role("button", name="Install", exact=True).click()
    form.get_by_label("Source").fill("/no/such/folder")
    form.get_by_role("button", name="Install").click()
    expect(form.locator(".fault:not(:empty)").first).to_be_visible()
    page.keyboard.press("Escape")
    folder = pathlib.Path(stage.daemon.home).parent / "elsewhere"
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text(SKILL.format(name="elsewhere", description="From a folder.", text="Read .bashrc first.", rest=""))
    page.get_by_role("button", name="Install", exact=True).click()
    form.get_by_label("Source").fill(str(folder))
    form.get_by_role("button", name="Install").click()
    expect(page.get_by_role("heading", name="elsewhere", exact=True)).to_be_visible()


def case_hands(stage):
    """A hand is installed, started with settings, paused, followed and ended; what it lacks is said."""
    stage.expect_refusals(400, 404, 409)
    page = stage.open("#/library/hands")
    expect(page.get_by_role("heading", name="No hands yet")).to_be_visible()
    page.locator(".tab-actions").get_by_role("button", name="Install").click()
    form = dialog(page)
    form.get_by_label("HAND.toml").fill("id = 1")
    form.get_by_role("button", name="Install").click()
    expect(form.locator(".fault:not(:empty)").first).to_be_visible()
    form.get_by_label("HAND.toml").fill(HAND)
    form.get_by_label("SKILL.md").fill("Visitors come by the east door.")
    access.check(page, "the form of a hand")
    form.get_by_role("button", name="Install").click()
    expect(page.get_by_role("heading", name="Front desk")).to_be_focused()
    expect(page.get_by_role("region", name="Needs")).to_contain_text("A bell is missing")
    expect(page.get_by_role("region", name="Needs")).to_contain_text("a_tool_of_tomorrow")
    access.check(page, "a hand")
    page.get_by_role("button", name="Start").click()
    expect(form).to_contain_text("Missing: A bell")
    form.get_by_label("Tone").select_option("brief")
    form.get_by_role("switch", name="Greet first").uncheck()
    form.get_by_role("button", name="Start").click()
    expect(cards(page, "Running hands")).to_have_count(1)
    instance = stage.daemon.call("GET", "/api/hands/active")["instances"][0]
    assert instance["config"] == {"tone": "brief", "greets": "false"}, instance
    card = cards(page, "Running hands").first
    expect(card).to_contain_text("running")
    expect(card).to_contain_text("Visitors")
    stage.daemon.call("PUT", f"/api/memory/agents/{instance['agent_id']}/kv/desk_visitors", {"value": 12})
    expect(card.locator(".stat")).to_contain_text("12")
    access.check(page, "running hands")
    card.get_by_role("button", name="Pause").click()
    expect(card).to_contain_text("paused")
    card.get_by_role("button", name="Resume").click()
    expect(card.get_by_role("button", name="Pause")).to_be_visible()
    card.get_by_role("button", name="Settings").click()
    expect(form.get_by_label("Tone")).to_have_value("brief")
    form.get_by_label("Tone").select_option("warm")
    form.get_by_role("button", name="Save").click()
    toast(page, "Saved")
    card.get_by_role("button", name="End").click()
    form.get_by_role("button", name="End").click()
    expect(page.get_by_role("heading", name="No hand is running")).to_be_visible()
    stage.open("#/library/hands/desk", page)
    page.get_by_role("button", name="Remove").click()
    form.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", name="No hands yet")).to_be_visible()


@config(FULL)
def case_extensions(stage):
    """An extension of the catalog is installed with its access data, opened and removed."""
    entry(stage, "notes", "Notes", f"Keeps notes. {MARKUP}")
    stage.daemon.call("POST", "/api/mcp/reload", {})
    page = stage.open("#/library/extensions")
    expect(cards(page, "Extensions")).to_have_count(1)
    assert page.locator(".page-library img").count() == 0 and page.title() != "obeyed"
    access.check(page, "extensions")
    page.get_by_role("button", name="Install Notes").click()
    form = dialog(page)
    form.get_by_label("Access token").fill("ghp-secret")
    form.get_by_role("button", name="Install").click()
    expect(cards(page, "Extensions").first).to_contain_text("Open")
    until("it is ready", lambda: stage.daemon.call("GET", "/api/extensions/notes")["status"] == "ready")
    page.reload()
    expect(cards(page, "Extensions").first).to_contain_text("ready")
    page.get_by_role("button", name="Remove Notes").click()
    form.get_by_role("button", name="Remove").click()
    toast(page, "Removed")
    expect(page.get_by_role("button", name="Install Notes")).to_be_visible()


PLUGIN = '''name = "notes"
version = "1.2.0"
description = {description}
author = "Ada"

[hooks]
ingest = "hooks/ingest.py"
'''


def case_plugins(stage):
    """A plugin is installed, tested, disabled and removed; how its hooks do is shown; markup stays text."""
    stage.expect_refusals(400, 404, 409, 422)
    page = stage.open("#/library/plugins")
    expect(page.get_by_role("heading", name="No plugins yet")).to_be_visible()
    access.check(page, "no plugins")
    folder = pathlib.Path(stage.daemon.home).parent / "notes"
    (folder / "hooks").mkdir(parents=True, exist_ok=True)
    (folder / "plugin.toml").write_text(PLUGIN.format(description=json.dumps(f"Keeps notes. {MARKUP}")))
    (folder / "hooks/ingest.py").write_text("import json\nprint(json.dumps({'memories': [{'content': 'a note'}]}))\n")
    page.locator(".tab-actions").get_by_role("button", name="Install").click()
    form = dialog(page)
    form.get_by_label("Source").fill("/no/such/folder")
    form.get_by_role("button", name="Install").click()
    expect(form.locator(".fault:not(:empty)").first).to_be_visible()
    form.get_by_label("Source").fill(str(folder))
    access.check(page, "the form of a plugin")
    form.get_by_role("button", name="Install").click()
    expect(page.get_by_role("heading", name="notes", exact=True)).to_be_focused()
    assert page.locator(".page-library img").count() == 0 and page.title() != "obeyed"
    expect(fact(page, "Version")).to_have_text("1.2.0")
    expect(page.get_by_role("region", name="Runs", exact=True)).to_contain_text("No hook has run")
    page.get_by_role("button", name="Test ingest").click()
    expect(form).to_contain_text("a note")
    access.check(page, "a test of a hook")
    form.locator("footer").get_by_role("button", name="Close").click()
    expect(page.get_by_role("region", name="Runs of hooks")).to_contain_text("Good")
    access.check(page, "a plugin")
    page.get_by_role("button", name="Disable").click()
    toast(page, "Disabled")
    expect(page.get_by_text("It is disabled.")).to_be_visible()
    page.get_by_role("link", name="All plugins").click()
    expect(cards(page, "Plugins").first).to_contain_text("disabled")
    page.get_by_role("button", name="Enable notes").click()
    expect(cards(page, "Plugins").first).to_contain_text("not in use")
    access.check(page, "plugins")
    page.get_by_role("button", name="Create").click()
    form.get_by_label("Name").fill("../no")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Name").fill("demo")
    form.get_by_label("Runtime").select_option("bash")
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="demo", exact=True)).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    form.get_by_role("button", name="Remove").click()
    toast(page, "Removed")
    expect(cards(page, "Plugins")).to_have_count(1)


def case_find(stage):
    """A registry that cannot be reached is said, and can be asked again."""
    stage.expect_refusals(502, 504)
    page = stage.open("#/library/find")
    expect(page.get_by_role("heading", name="Search for a skill")).to_be_visible()
    access.check(page, "find skills")
    rows = {"results": [{"name": "haiku", "author": "Ada", "description": f"Writes haiku. {MARKUP}", "downloads": 12000, "version": "1.0.0", "install_id": "haiku"}], "total": 1, "page": 1, "warnings": []}
    page.route("**/api/marketplace/search?*", lambda route: route.fulfill(json=rows))
    page.get_by_label("Search for skills").fill("poetry")
    page.keyboard.press("Enter")
    expect(cards(page, "Results")).to_have_count(1)
    expect(cards(page, "Results").first).to_contain_text("12K downloads")
    assert page.locator(".page-library img").count() == 0 and page.title() != "obeyed"
    page.get_by_role("button", name="Install haiku").click()
    expect(dialog(page)).to_contain_text("by Ada")
    page.keyboard.press("Escape")
    page.route("**/api/clawhub/search?*", lambda route: route.fulfill(status=502, json={"error": "clawhub.ai does not answer", "code": "upstream_failed"}))
    page.get_by_role("button", name="ClawHub", exact=True).click()
    expect(page.get_by_role("heading", name="The search failed")).to_be_visible()
    expect(page.get_by_text("clawhub.ai does not answer")).to_be_visible()


@config(FULL)
def case_pictures(stage):
    """What each part looks like, in light and dark, on a desktop and a phone."""
    fill_skills(stage)
    entry(stage, "notes", "Notes", "Keeps notes.")
    stage.daemon.call("POST", "/api/mcp/reload", {})
    stage.daemon.call("POST", "/api/hands/install", {"toml_content": HAND})
    stage.daemon.call("POST", "/api/hands/desk/activate", {"config": {}})
    stage.shoot_all("library-skills", "#/library", lambda page: expect(cards(page, "Skills")).to_have_count(2))
    stage.shoot_all("library-skill", "#/library/skills/release-notes", lambda page: page.get_by_role("heading", name="release-notes").wait_for())
    stage.shoot_all("library-hand", "#/library/hands/desk", lambda page: page.get_by_role("heading", name="Front desk").wait_for())
    stage.shoot_all("library-running", "#/library/running", lambda page: expect(cards(page, "Running hands")).to_have_count(1))
    stage.shoot_all("library-extensions", "#/library/extensions", lambda page: expect(cards(page, "Extensions")).to_have_count(1))


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
