"""Agents of other systems, peers and the live graph in the browser: who talks to whom, here and elsewhere."""

import re
import shutil
import sys

from playwright.sync_api import expect

import access
import stage as stages
from connections import MARKUP, SECRET, answer, dialog, fact, has, look, toast
from stage import config, until


def case_external_agents_off(stage):
    """A daemon that is not offered over A2A says how to offer it; one without routes for external agents says that."""
    stage.expect_refusals(404)
    page = stage.open("#/connections/agents")
    own = page.get_by_role("region", name="This daemon")
    expect(own).to_contain_text("enabled = true")
    expect(own.locator(".badge")).to_have_text("off")
    answer(page, "**/api/a2a/agents?*", {"GET": (404, {"error": "unknown path"})})
    page.reload()
    expect(page.get_by_role("list", name="External agents")).to_contain_text("cannot send tasks to agents of other systems")
    expect(page.get_by_role("button", name="Discover an agent")).to_have_count(0)
    access.check(page, "without external agents")


@config('[a2a]\nenabled = true\nagents = ["public-*"]\nname = "Front office"\n')
def case_external_agents(stage):
    """The card of this daemon; an agent elsewhere is discovered, gets a task, and is removed."""
    stage.expect_refusals(400, 404)
    for name in ["public-desk", "public-guide", "secret"]:
        stage.daemon.agent(name)
    page = stage.new_page()
    agents = []
    task = {"task_id": "t-1", "id": "t-1", "agent_id": "a-1", "agent_name": "Translator", "status": "working", "message": "Good morning, in French", "result": None, "error": None, "created_at": "2026-01-01T00:00:00Z"}
    old = {**task, "task_id": "t-0", "id": "t-0", "status": "failed", "message": "Long ago", "error": "the server is gone", "created_at": "2025-01-01T00:00:00Z"}
    other = {"id": "a-1", "name": MARKUP, "url": "https://other.example", "description": f"Translates. {MARKUP}", "version": "2.0", "header": "Authorization", "card_changed_at": None, "skills": [{"id": "s", "name": "Translation"}]}
    answer(page, "**/api/a2a/agents?*", {"GET": lambda _: (200, {"agents": agents, "total": len(agents)})})
    answer(page, "**/api/a2a/agents/a-1", {"DELETE": lambda _: (agents.clear(), (200, {"ok": True}))[1]})

    def discovered(request):
        if request.post_data_json["url"] != "https://other.example":
            return 400, {"error": "url must be an http or https URL", "field": "url"}
        agents.append(other)
        return 201, other

    discoveries = answer(page, "**/api/a2a/discover", {"POST": discovered})
    sends = answer(page, "**/api/a2a/send", {"POST": lambda _: (200, task)})
    answer(page, "**/api/a2a/tasks/t-1/status", {"GET": lambda _: (200, task)})
    answer(page, "**/api/a2a/tasks?*", {"GET": lambda _: (200, {"tasks": [old, task], "total": 2})})
    stage.open("#/connections/agents", page)
    own = page.get_by_role("region", name="This daemon")
    expect(own.locator(".badge")).to_have_text("on")
    expect(fact(page, "Agent card")).to_contain_text(f"{stage.daemon.url}/.well-known/agent-card.json")
    expect(fact(page, "Offered agents")).to_have_text("public-desk, public-guide")

    page.get_by_role("button", name="Discover an agent").click()
    form = dialog(page)
    form.get_by_label("Address").fill("other")
    form.get_by_role("button", name="Discover").click()
    expect(form.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Address").fill("https://other.example")
    form.get_by_label("Value").fill(SECRET)
    form.get_by_role("button", name="Discover").click()
    expect(form.get_by_label("Header")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Header").fill("Authorization")
    access.check(page, "the form of a discovery")
    form.get_by_role("button", name="Discover").click()
    cards = page.get_by_role("list", name="External agents")
    expect(cards).to_contain_text(MARKUP)
    expect(cards).to_contain_text("Translation")
    assert page.locator(".connection-card img").count() == 0 and page.title() != "obeyed"
    page.get_by_role("button", name=f"Send a task to {MARKUP}").click()
    form.get_by_label("Message").fill("Good morning, in French")
    form.get_by_role("button", name="Send").click()
    tasks = page.get_by_role("list", name="Sent tasks")
    expect(tasks).to_contain_text("working")
    assert discoveries[-1][1]["headers"] == {"Authorization": SECRET} and SECRET not in page.content()
    assert sends == [("POST", {"agent_id": "a-1", "message": "Good morning, in French", "blocking": False})], sends
    task = {**task, "status": "input-required", "result": {"role": "agent", "parts": [{"text": "Formal or not?"}]}}
    look(page)
    page.get_by_role("button", name=f"Answer {MARKUP}").click()
    form.get_by_label("Message").fill("Formal")
    form.get_by_role("button", name="Send").click()
    expect(form).to_have_count(0)
    assert sends[-1] == ("POST", {"agent_id": "a-1", "message": "Formal", "blocking": False, "task_id": "t-1"}), sends
    task = {**task, "status": "completed", "result": {"role": "agent", "parts": [{"text": f"Bonjour {MARKUP}"}]}}
    look(page)
    expect(tasks).to_contain_text(f"Bonjour {MARKUP}")
    page.get_by_role("button", name="Show earlier tasks").click()
    expect(tasks.get_by_role("listitem")).to_have_count(2)
    expect(tasks.get_by_role("listitem").last).to_contain_text("The server is gone.")
    assert page.locator(".tool-list img").count() == 0
    access.check(page, "external agents")
    page.get_by_role("button", name=f"More for {MARKUP}").click()
    page.get_by_role("menuitem", name="Remove").click()
    form.get_by_role("button", name="Remove").click()
    expect(cards).to_contain_text("No external agents yet.")


@config('[web.fetch]\nssrf_allowed_hosts = ["127.0.0.0/8"]\n[a2a]\nenabled = true\nagents = ["desk"]\nname = "Front office"\n')
def case_external_agents_over_a2a(stage):
    """The whole way: the daemon discovers itself as if it were elsewhere, and its agent answers a task."""
    if not has(stage, "/api/a2a/discover"):
        return
    stage.expect_refusals(400, 502)
    stage.daemon.agent("desk")
    page = stage.open("#/connections/agents")
    page.get_by_role("button", name="Discover an agent").click()
    form = dialog(page)
    form.get_by_label("Address").fill(stage.scripted.url)
    form.get_by_role("button", name="Discover").click()
    expect(form.locator(".fault:not(:empty)")).to_be_visible()
    form.get_by_label("Address").fill(stage.daemon.url)
    form.get_by_role("button", name="Discover").click()
    toast(page, "Discovered Front office")
    cards = page.get_by_role("list", name="External agents")
    expect(cards).to_contain_text("Skills: desk")
    page.get_by_role("button", name="Send a task to Front office").click()
    form.get_by_label("Message").fill("Good morning")
    form.get_by_role("button", name="Send").click()
    tasks = page.get_by_role("list", name="Sent tasks")
    expect(tasks).to_contain_text("completed")
    expect(tasks).to_contain_text("echo:")
    stage.shoot("connections-a2a-real", page)
    page.reload()
    page.get_by_role("button", name="Show earlier tasks").click()
    expect(tasks).to_contain_text("Good morning")
    page.get_by_role("button", name="More for Front office").click()
    page.get_by_role("menuitem", name="Read its card again").click()
    toast(page, "Read again")
    page.get_by_role("button", name="More for Front office").click()
    page.get_by_role("menuitem", name="Remove").click()
    form.get_by_role("button", name="Remove").click()
    expect(cards).to_contain_text("No external agents yet.")
    assert stage.daemon.call("GET", "/api/a2a/agents?limit=9")["agents"] == []


def has_network(stage):
    """Does this daemon know peers? The page of one that does not says so, which is checked here."""
    if has(stage, "/api/peers"):
        return True
    stage.expect_refusals(404)
    page = stage.open("#/connections/peers")
    expect(page.get_by_role("heading", name="Not available in this daemon")).to_be_visible()
    access.check(page, "without peers")
    return False


NETWORK = 'network_enabled = true\n[network]\nnode_name = "{name}"\nlisten_addresses = ["127.0.0.1:0"]\nshared_secret = "a-secret-of-the-tests-that-is-long-enough"\n'


@config(NETWORK.replace("{name}", "office"))
def case_peers(stage):
    """Two nodes see each other, with the fingerprints of their keys; a peer that goes is disconnected, and its key can be forgotten."""
    if not has_network(stage):
        return
    until("the network is on", lambda: stage.daemon.call("GET", "/api/network/status")["listen_addr"])
    status = stage.daemon.call("GET", "/api/network/status")
    other = stages.Daemon(NETWORK.replace("{name}", "workshop") + f'bootstrap_peers = ["{status["listen_addr"]}"]\n')
    try:
        other.agent("carpenter")
        page = stage.open("#/connections/peers")
        own = page.get_by_role("region", name="This node")
        expect(own.locator(".badge")).to_have_text("online")
        peers = page.get_by_role("list", name="Peers")
        expect(peers).to_contain_text("workshop")
        expect(peers).to_contain_text("connected")
        # Nodes tell each other of new agents with their pings, every 30 seconds.
        expect(peers).to_contain_text("carpenter")
        fingerprint = other.call("GET", "/api/network/status")["identity_fingerprint"]
        assert fingerprint in peers.inner_text().replace(" ", "").replace("\n", ""), fingerprint
        assert status["identity_fingerprint"] in own.inner_text().replace(" ", ""), status
        access.check(page, "peers")
        stage.shoot_all("connections-peers", "#/connections/peers", lambda page: page.get_by_role("list", name="Peers").get_by_role("listitem").wait_for())
        other.stop()
        expect(peers.locator(".badge")).to_have_text("disconnected")
        peers.get_by_role("button", name="More for workshop").click()
        page.get_by_role("menuitem", name="Forget its key").click()
        dialog(page).get_by_role("button", name="Forget").click()
        expect(peers).not_to_contain_text("workshop")
        assert stage.daemon.call("GET", "/api/network/status")["pinned_peers"] == []
    finally:
        if other.process.poll() is None:
            other.stop()
        shutil.rmtree(other.home, ignore_errors=True)


def case_no_peers(stage):
    """A daemon whose network is off says how to turn it on."""
    if not has_network(stage):
        return
    page = stage.open("#/connections/peers")
    own = page.get_by_role("region", name="This node")
    expect(own.locator(".badge")).to_have_text("off")
    expect(own).to_contain_text("network_enabled = true")
    access.check(page, "without a network")


def tell(stage, source, target, text):
    """One agent writes to another."""
    stage.daemon.call("POST", "/api/comms/send", {"from": source, "to": target, "content": text})


def case_graph(stage):
    """Messages appear as they happen and light the line between two agents; a broken stream misses none; a table says the same."""
    ids = {name: stage.daemon.agent(name) for name in ["researcher", "writer", "editor"]}
    page = stage.open("#/connections/graph")
    events = page.get_by_role("list", name="Events")
    expect(page.get_by_text("No agent has written to another yet.")).to_be_visible()
    live = page.locator(".tab-actions").get_by_role("status")
    expect(live).to_have_text("live")
    tell(stage, ids["researcher"], ids["writer"], MARKUP)
    expect(page.locator(".talk-edge.is-lit")).to_have_count(1)
    expect(events.get_by_role("listitem").first).to_contain_text("researcher wrote to writer")
    expect(events).to_contain_text(MARKUP)
    assert page.locator(".talk-events img").count() == 0
    tell(stage, ids["writer"], ids["editor"], "Please check this.")
    expect(page.locator(".talk-edge")).to_have_count(2)
    expect(page.locator(".talk-edge.is-lit")).to_have_count(0)

    # By the keyboard: one stop, arrows between agents, Enter chooses.
    nodes = page.locator(".talk-node")
    expect(nodes).to_have_count(4)
    expect(page.locator('.talk-node[tabindex="0"]')).to_have_count(1)
    page.locator('.talk-node[tabindex="0"]').focus()
    reached = set()
    for key in ["Home", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "End"]:
        page.keyboard.press(key)
        reached.add(page.evaluate("document.activeElement.dataset.key"))
    assert len(reached) >= 3 and None not in reached, reached
    page.get_by_role("button", name=re.compile("^researcher, Running: 1 sent, 0 received")).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".talk-chosen")).to_contain_text("With writer")
    expect(events.get_by_role("listitem")).to_have_count(1)
    access.check(page, "an agent of the graph")
    page.get_by_role("button", name="Show the events of all agents").click()
    expect(events).to_contain_text("Please check this.")

    # The stream breaks off; what happens meanwhile is there when it goes on.
    resumed = []
    page.on("request", lambda request: request.url.endswith("/api/comms/events/stream") and resumed.append(request.headers.get("last-event-id")))
    stage.allowed += ["net::ERR", "status of 503"]
    last = stage.daemon.call("GET", "/api/comms/events")["events"][0]["id"]
    stage.daemon.restart()
    tell(stage, ids["editor"], ids["researcher"], "While you were away.")
    expect(events).to_contain_text("While you were away.")
    expect(live).to_have_text("live")
    assert last in resumed, (last, resumed)
    assert events.get_by_text("Please check this.").count() == 1

    # The same as a table, which is an address of its own.
    page.get_by_role("button", name="List", exact=True).click()
    table = page.get_by_role("table", name="Agents and whom they talk with")
    expect(table.get_by_role("row").filter(has_text="editor").first).to_contain_text("researcher")
    assert page.evaluate("location.hash") == "#/connections/graph?view=list"
    table.get_by_role("button", name=re.compile("^writer")).click()
    expect(page.locator(".talk-chosen")).to_contain_text("Open the chat of writer")
    access.check(page, "the graph as a list")
    stage.daemon.call("DELETE", f"/api/agents/{ids['editor']}?confirm=true")
    page.get_by_role("button", name="Graph", exact=True).click()
    look(page)
    expect(nodes).to_have_count(3)


def case_graph_of_many_agents(stage):
    """Of very many agents the most recent are shown, with the number of the others; the picture stays quick."""
    many = 1500
    names = [{"manifest_toml": f'name = "agent-{at}"\n'} for at in range(many)]
    for at in range(0, many, 100):
        stage.daemon.call("POST", "/api/agents/bulk", {"agents": names[at:at + 100]})
    quiet = stage.daemon.agent("quiet")
    late = stage.daemon.agent("late-comer")
    page = stage.open("#/connections/graph")
    nodes = page.locator(".talk-node")
    nodes.first.wait_for()
    shown = nodes.count()
    assert 20 < shown < 80, shown
    expect(page.get_by_text(f"{shown} agents, the most recent. {many + 3 - shown:,} more are not shown.")).to_be_visible()
    # One that was not shown has something to say.
    tell(stage, late, quiet, "Here I am.")
    expect(page.get_by_role("button", name=re.compile("^late-comer, Running: 1 sent"))).to_be_visible()
    assert nodes.count() == shown
    boxes = page.evaluate("[...document.querySelectorAll('.talk-node circle')].map((node) => { const box = node.getBoundingClientRect(); return [box.x, box.y]; })")
    near = [(a, b) for at, a in enumerate(boxes) for b in boxes[at + 1:] if abs(a[0] - b[0]) < 40 and abs(a[1] - b[1]) < 30]
    assert not near, near
    page.get_by_role("button", name="List", exact=True).click()
    expect(page.get_by_text(re.compile("more are not shown"))).to_be_visible()
    assert page.locator(".t-body .t-row").count() < 60


def fill_graph(stage):
    """Agents that talk, for pictures."""
    names = ["assistant-lead", "researcher", "writer", "editor", "fact-checker", "translator", "support-desk", "billing", "release-manager", "reviewer", "tester", "archivist"]
    ids = {name: stage.daemon.agent(name) for name in names}
    talks = ["assistant-lead researcher", "researcher fact-checker", "fact-checker researcher", "researcher writer", "writer editor", "editor writer", "writer translator",
             "assistant-lead support-desk", "support-desk billing", "billing support-desk", "release-manager reviewer", "reviewer release-manager", "release-manager tester", "assistant-lead writer"]
    for at, pair in enumerate(talks):
        source, target = pair.split()
        tell(stage, ids[source], ids[target], f"Part {at + 1} is ready. Please look at it before noon and tell me what is missing.")
    stage.daemon.call("POST", f"/api/agents/{ids['archivist']}/stop")
    return ids


@config('[a2a]\nenabled = true\n')
def case_pictures(stage):
    """The graph and external agents, light and dark, on a desktop and a phone, without barriers."""
    ids = fill_graph(stage)

    def lit(page):
        page.locator(".talk-edge").nth(9).wait_for()
        tell(stage, ids["researcher"], ids["writer"], "Three new sources.")
        page.locator(".talk-edge.is-lit").wait_for()

    others = [{"id": f"a-{at}", "name": name, "url": f"https://{name.lower().replace(' ', '-')}.example/a2a", "description": text, "version": "1.2", "skills": [{"id": "s", "name": skill} for skill in skills]}
                 for at, (name, text, skills) in enumerate([("Travel desk", "Plans trips and books trains, hotels and meeting rooms.", ["Search connections", "Book"]), ("Legal", "Reads contracts.", ["Review"]),
                                                            ("Translations", "Translates between forty languages and keeps the terms of your glossary.", ["Translate", "Proofread", "Glossary"])])]

    def agents(page):
        answer(page, "**/api/a2a/agents?*", {"GET": (200, {"agents": others, "total": 3})})
        answer(page, "**/api/a2a/send", {"POST": (200, {"task_id": "t", "agent_id": "a-0", "status": "completed", "result": {"role": "agent", "parts": [{"text": "There is a train at 9:04."}]}})})
        page.reload()
        page.get_by_role("button", name="Send a task to Travel desk").click()
        dialog(page).get_by_label("Message").fill("How do I get to Lyon tomorrow morning?")
        dialog(page).get_by_role("button", name="Send").click()
        page.get_by_role("list", name="Sent tasks").get_by_role("listitem").first.wait_for()

    stage.expect_refusals(404)
    stage.shoot_all("connections-agents", "#/connections/agents", agents)
    stage.shoot_all("connections-graph", "#/connections/graph", lit)
    stage.shoot_all("connections-graph-list", "#/connections/graph?view=list", lambda page: page.locator(".t-body .t-row").nth(5).wait_for())


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
