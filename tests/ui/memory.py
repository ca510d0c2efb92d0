"""Memory in the browser: entries by agent and user, search, one entry with its history, the knowledge graph, upkeep, export and import."""

import json
import pathlib
import re
import sys
import urllib.parse

from playwright.sync_api import expect

import access
import stage as stages
from connections import MARKUP, dialog, fact, toast
from stage import until


def add(stage, agent, content, **rest):
    """Stores an entry; gives its id."""
    return stage.daemon.call("POST", "/api/memory", {"agent_id": agent, "content": content, **rest})["memory"]["id"]


def rows(page):
    return page.get_by_role("table", name="Memory entries").locator(".t-body .t-row")


def status(page):
    return page.locator(".tab-entries [role=status]").first


def fill_memory(stage):
    """Two agents with entries of two users, and a graph."""
    daemon = stage.daemon
    agents = daemon.agent("scout"), daemon.agent("guide")
    first = add(stage, agents[0], "Ana prefers answers in French", user_id="ana", category="preference", tags=["language"], confidence=0.9,
                metadata={"session_id": "11111111-2222-4333-8444-555555555555", "turn_id": "66666666-2222-4333-8444-555555555555"})
    add(stage, agents[0], "Bo works at Analytical Engines", user_id="bo", category="work", confidence=0.5)
    add(stage, agents[1], "Ana lives in Lyon", user_id="ana", category="personal")
    daemon.call("POST", f"/api/memory/agents/{agents[0]}/import", {"memories": [{"content": f"Read on a page: {MARKUP}", "taint": ["web"], "user_id": MARKUP, "category": "fact", "tags": ["<b>tag</b>"]}]})
    relations = [("Ada", "person", "works_at", "Analytical", "organization"), ("Analytical", "organization", "owns", "Engine", "project"), ("Bo", "person", "knows", "Ada", "person"), ("Engine", "project", "powered_by", MARKUP, "concept")]
    daemon.call("POST", f"/api/memory/agents/{agents[0]}/relations", {"relations": [dict(zip(["subject", "subject_type", "relation", "object", "object_type"], one)) for one in relations],
                                                                    "entities": [{"name": "Ada", "entity_type": "person", "properties": {"born": 1815, "note": MARKUP}, "confidence": 0.8, "taint": ["web"]}]})
    return *agents, first


def case_entries(stage):
    """Entries are filtered, searched, linked to, changed and deleted; what changes elsewhere appears; markup stays text."""
    stage.expect_refusals(400, 404)
    scout, guide, first = fill_memory(stage)
    page = stage.open("#/memory")
    expect(rows(page)).to_have_count(4)
    expect(status(page)).to_have_text("4 entries")
    assert page.locator(".page-memory img").count() == 0 and page.title() != "obeyed"
    expect(page.locator(".page-memory")).to_contain_text("Made from web content")
    access.check(page, "memory entries")
    page.get_by_label("User", exact=True).fill("ana")
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Category", exact=True).fill("personal")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("guide")
    assert "user=ana" in page.url and "category=personal" in page.url, page.url
    page.reload()
    expect(rows(page)).to_have_count(1)
    page.get_by_label("User", exact=True).fill("")
    page.get_by_label("Category", exact=True).fill("nothing")
    expect(status(page)).to_have_text("No entry matches the filters.")
    stage.open(f"#/memory?agent={scout}", page)
    expect(page.get_by_label("Agent", exact=True)).to_have_value("scout")
    expect(rows(page)).to_have_count(3)
    page.get_by_label("Search", exact=True).fill("french")
    expect(status(page)).to_contain_text(re.compile(r"1 result, ranked by words"))
    expect(rows(page)).to_contain_text("Best match")
    rows(page).get_by_role("button").click()
    expect(page).to_have_url(re.compile(f"entry={first}"))
    expect(page.get_by_role("heading", name="Memory entry")).to_be_focused()
    expect(fact(page, "Confidence")).to_have_text("High (0.90)")
    expect(fact(page, "Source")).to_contain_text("Added by a client")
    expect(page.get_by_role("link", name="Open the conversation")).to_have_attribute("href", f"#/chat/{scout}/11111111-2222-4333-8444-555555555555")
    expect(page.get_by_role("region", name="History")).to_contain_text("has not changed")
    access.check(page, "a memory entry")

    page.get_by_role("button", name="Edit").click()
    form = dialog(page)
    form.get_by_label("Confidence").fill("2")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_label("Confidence")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Confidence").fill("0.6")
    form.get_by_label("Content").fill("Ana prefers answers in German")
    form.get_by_label("Tags").fill("language, german")
    form.get_by_role("button", name="Save").click()
    toast(page, "Saved")
    expect(fact(page, "Confidence")).to_have_text("Medium (0.60)")
    expect(page.get_by_role("list", name="Earlier contents")).to_contain_text("Ana prefers answers in French")
    assert stage.daemon.call("GET", f"/api/memory/items/{first}")["tags"] == ["language", "german"]
    # A change elsewhere is shown without a reload.
    stage.daemon.call("PUT", f"/api/memory/items/{first}", {"content": "Ana prefers answers in Italian"})
    expect(page.get_by_role("region", name="Memory entry")).to_contain_text("Italian")
    page.go_back()
    expect(status(page)).to_contain_text("No entry matches the search")
    page.get_by_label("Search", exact=True).fill("")
    expect(rows(page)).to_have_count(3)
    added = add(stage, scout, "Learned elsewhere")
    expect(rows(page)).to_have_count(4)
    expect(rows(page).filter(has_text="Learned elsewhere")).to_have_count(1)
    page.get_by_role("checkbox", name="Select: Learned elsewhere").check()
    page.get_by_role("checkbox", name="Select: Bo works at").check()
    page.get_by_role("button", name="Delete 2 selected entries").click()
    form.get_by_role("button", name="Delete").click()
    toast(page, "Deleted 2 entries")
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="Add an entry").click()
    form.get_by_role("button", name="Add").click()
    expect(form.locator("[aria-invalid=true]")).to_have_count(1)
    form.get_by_label("Content").fill("Added by hand")
    form.get_by_label("User").fill("ana")
    access.check(page, "the form of an entry")
    form.get_by_role("button", name="Add").click()
    toast(page, "Added")
    expect(page.get_by_role("region", name="Memory entry")).to_contain_text("Added by hand")
    page.get_by_role("button", name="Delete").click()
    form.get_by_role("button", name="Delete").click()
    expect(rows(page)).to_have_count(2)
    stage.open(f"#/memory?entry={added}", page)
    expect(page.get_by_text("This entry no longer exists")).to_be_visible()
    markup = next(row for row in stage.daemon.call("GET", f"/api/memory/agents/{scout}")["memories"] if "img" in row["content"])
    stage.open(f"#/memory?agent={scout}&entry={markup['id']}", page)
    expect(page.get_by_role("region", name="Memory entry")).to_contain_text(MARKUP)
    expect(page.get_by_text("Made from web content. An answer")).to_be_visible()
    assert page.locator(".page-memory img").count() == 0 and page.title() != "obeyed"
    # The chat leads to the memory of its agent.
    stage.open(f"#/chat/{guide}", page)
    page.locator(".chat-head").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Memory of the agent").click()
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("Ana lives in Lyon")


def case_many_entries(stage):
    """A long list is read page by page while it is scrolled, a phone of 320 pixels shows it, and the keyboard reaches it."""
    agent = stage.daemon.agent("scout")
    made = stage.daemon.call("POST", f"/api/memory/agents/{agent}/import", {"memories": [{"content": f"Fact number {n:05}", "category": "odd" if n % 2 else "even"} for n in range(1000)]})
    assert made["created"] == 1000, made
    page = stage.new_page(viewport={"width": 320, "height": 640}, color_scheme="dark")
    stage.open(f"#/memory?agent={agent}&category=odd", page)
    expect(status(page)).to_have_text("500 entries")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it is wider than the window"
    access.check(page, "many entries at 320 pixels")
    view = page.get_by_role("table", name="Memory entries")
    expect(view).to_have_attribute("aria-rowcount", "101")

    def scrolled():
        view.evaluate("node => { node.scrollTop = node.scrollHeight; }")
        return view.get_attribute("aria-rowcount") == "501"

    until("all pages are read", scrolled)
    stage.shoot("memory-many-320", page)
    first = rows(page).first.get_by_role("button")
    first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Memory entry")).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "an entry is wider than the window"


def case_graph(stage):
    """The graph of an agent: opened by its list and by its picture, with the keyboard, changed elsewhere, and deleted from."""
    stage.expect_refusals(400)
    scout, guide, _ = fill_memory(stage)
    page = stage.open("#/memory/graph")
    expect(page.get_by_role("heading", name="Choose an agent")).to_be_visible()
    stage.open(f"#/memory/graph?agent={guide}", page)
    expect(page.get_by_role("heading", name="This agent knows nothing yet")).to_be_visible()
    stage.open(f"#/memory/graph?agent={scout}", page)
    entities = page.get_by_role("table", name="Entities").locator(".t-body .t-row")
    expect(entities).to_have_count(5)
    expect(page.locator(".talk-node")).to_have_count(5)
    assert page.locator(".page-memory img").count() == 0 and page.title() != "obeyed"
    page.get_by_label("Type", exact=True).fill("person")
    expect(entities).to_have_count(2)
    page.get_by_label("Name", exact=True).fill("AD")
    expect(entities).to_have_count(1)
    page.get_by_label("Type", exact=True).fill("a:b")
    expect(page.get_by_label("Type", exact=True)).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Type", exact=True).fill("")
    entities.get_by_role("button").click()
    expect(page).to_have_url(re.compile(urllib.parse.quote("person:ada", safe="")))
    detail = page.get_by_role("region", name="Entity", exact=True)
    expect(detail).to_contain_text("High (0.80)")
    expect(detail).to_contain_text("1815")
    expect(detail).to_contain_text(MARKUP)
    expect(detail).to_contain_text("Made from web content")
    expect(detail.get_by_role("listitem")).to_have_count(2)
    access.check(page, "an entity of the graph")
    stage.shoot("memory-graph", page)
    detail.get_by_role("link", name="Analytical").click()
    expect(detail.get_by_role("heading", name="Analytical")).to_be_visible()
    node = page.get_by_role("group", name="Entities").get_by_role("button", name=re.compile("^Engine, project"))
    node.focus()
    page.keyboard.press("Enter")
    expect(detail.get_by_role("heading", name="Engine")).to_be_visible()
    assert page.locator(".page-memory img").count() == 0 and page.title() != "obeyed"
    stage.daemon.call("POST", f"/api/memory/agents/{scout}/relations", [{"subject": "Engine", "subject_type": "project", "relation": "needs", "object": "Coal", "object_type": "concept"}])
    expect(detail).to_contain_text("Coal")
    detail.get_by_role("button", name="Delete: Engine needs Coal").click()
    form = dialog(page)
    form.get_by_role("button", name="Delete").click()
    expect(form).to_have_count(0)
    expect(detail).not_to_contain_text("Coal")
    detail.get_by_role("button", name="Delete the entity").click()
    form.get_by_role("button", name="Delete").click()
    expect(detail).to_contain_text("Select an entity")
    names = [one["name"] for one in stage.daemon.call("GET", f"/api/memory/agents/{scout}/entities")["entities"]]
    assert "Engine" not in names and "Coal" in names, names
    page.go_back()


def case_upkeep(stage):
    """Counts and settings, duplicates, cleanup and decay in words, export, and an import with its progress."""
    stage.expect_refusals(400)
    scout, guide, _ = fill_memory(stage)
    add(stage, scout, "Bo works at Analytical Engines", user_id="bo")
    add(stage, scout, "Hardly sure", confidence=0.01)
    page = stage.open("#/memory/upkeep")
    expect(page.locator(".stat", has_text="Entries")).to_contain_text("6")
    settings = page.get_by_role("region", name="Settings in effect")
    expect(settings.get_by_role("link")).to_have_attribute("href", "#/settings/config")
    expect(page.get_by_role("button", name="Find duplicates")).to_be_disabled()
    access.check(page, "upkeep of all agents")
    stage.open(f"#/memory/upkeep?agent={scout}", page)
    expect(page.locator(".stat", has_text="Entries")).to_contain_text("5")
    page.get_by_role("button", name="Find duplicates").click()
    groups = page.get_by_role("list", name="Duplicates")
    expect(groups.get_by_role("listitem")).to_have_count(1)
    page.get_by_role("button", name="Keep the newest of each").click()
    form = dialog(page)
    form.get_by_role("button", name="Consolidate").click()
    expect(page.get_by_text("1 entry hidden; 1 entry kept.")).to_be_visible()
    page.get_by_role("button", name="Clean up").click()
    form.get_by_role("button", name="Clean up").click()
    expect(page.get_by_text("1 entry deleted.")).to_be_visible()
    page.get_by_role("button", name="Lower confidence").click()
    form.get_by_role("button", name="Lower confidence").click()
    expect(page.get_by_text("Confidence of 0 entries lowered")).to_be_visible()
    expect(page.locator(".stat", has_text="Entries")).to_contain_text("3")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as JSON").click()
    file = pathlib.Path(download.value.path())
    assert len(json.loads(file.read_text())["memories"]) == 3 and download.value.suggested_filename == "memory-scout.json"
    stage.open(f"#/memory/upkeep?agent={guide}", page)
    expect(page.locator(".stat", has_text="Entries")).to_contain_text("1")
    page.get_by_label("File to import").set_input_files({"name": "m.json", "mimeType": "application/json", "buffer": file.read_bytes()})
    imports = page.get_by_role("list", name="Imports").get_by_role("listitem").first
    expect(imports).to_contain_text("3 of 3 entries: 3 created")
    expect(imports).to_contain_text("completed")
    expect(page.locator(".stat", has_text="Entries")).to_contain_text("4")
    bare = json.dumps([{"content": "From a bare array"}]).encode()
    page.get_by_label("File to import").set_input_files({"name": "n.json", "mimeType": "application/json", "buffer": b"\n " + bare})
    expect(imports).to_contain_text("1 of 1 entry: 1 created")
    page.get_by_label("File to import").set_input_files({"name": "x.json", "mimeType": "application/json", "buffer": b"no JSON"})
    toast(page, "The file is not JSON")
    access.check(page, "upkeep of an agent")


def case_faults(stage):
    """A list that cannot be read says why and can be tried again; a restore is waited for; missing permission is said."""
    stage.expect_refusals(403, 503)
    fill_memory(stage)
    page = stage.new_page()
    replies = [(403, {"error": "the key has no permission to read memory"}), (503, {"error": "a restore is in progress", "code": "exchanging"})]

    def refuse(route):
        if not replies:
            return route.continue_()
        status_code, body = replies.pop(0)
        return route.fulfill(status=status_code, content_type="application/json", headers={"retry-after": "1"}, body=json.dumps(body))

    page.route(re.compile(r"/api/memory\?"), refuse)
    stage.open("#/memory", page)
    expect(page.get_by_role("heading", name="Could not load this")).to_be_visible()
    expect(page.locator(".tab-entries")).to_contain_text("no permission to read memory")
    page.get_by_role("button", name="Try again").click()
    expect(rows(page)).to_have_count(4)
    assert not replies


def case_pictures(stage):
    """What each part looks like, in light and dark, on a desktop and a phone."""
    stage.shoot_all("memory-empty", "#/memory", lambda page: page.get_by_role("heading", name="No entries yet").wait_for())
    scout, _, first = fill_memory(stage)
    stage.shoot_all("memory", "#/memory", lambda page: expect(rows(page)).to_have_count(4))
    stage.shoot_all("memory-entry", f"#/memory?agent={scout}&entry={first}", lambda page: page.get_by_role("heading", name="Memory entry").wait_for())
    stage.shoot_all("memory-knowledge", f"#/memory/graph?agent={scout}&entity=person%3Aada", lambda page: expect(page.locator(".talk-node")).to_have_count(5))
    stage.shoot_all("memory-upkeep", f"#/memory/upkeep?agent={scout}", lambda page: expect(page.locator(".stat", has_text="Entries")).to_contain_text("3"))


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
