"""The page of a key that may only read: it has every part, and no button that would be refused."""

import re
import sys

from playwright.sync_api import expect

import access
import stage as stages
from channels import REAL
from connections import FULL, entry, raw
from library import HAND
from people import KEY, names, sign_in
from stage import config, until

#: Words that begin the names of buttons that change something.
CHANGES = re.compile("^(Accept|Add|Allow|Approve|Budget|Check for|Clean|Confirm|Create|Delete|Disable|Discover|Edit|Enable|End|Install|Keep|Lower|Make|Pause|Reconnect"
                     "|Rehearse|Reject|Reload|Remove|Replace|Restore|Resume|Revoke|Save|Select|Send|Set|Start|Stop|Test|Use|Withdraw)\\b")


def fill_installation(stage):
    """Something in each part of the page; gives addresses with what both keys see there, and buttons for the owner alone."""
    call = stage.daemon.call
    agent = stage.daemon.agent("scout", 'system_prompt = "Be kind."\n')
    for waiting in ["deploy", "purge"]:
        call("POST", "/api/approvals", {"agent_id": agent, "action": waiting, "description": f"Please: {waiting}", "payload": {"command": waiting}})
    call("POST", "/api/models/aliases", {"alias": "cheap", "model_id": "gpt-4o-mini"})
    entry(stage, "notes", "Notes")
    call("POST", "/api/mcp/reload", {})
    call("POST", "/api/mcp/servers", raw("docs"))
    call("POST", "/api/skills/create", {"name": "haiku", "description": "Writes haiku", "prompt_context": "Five, seven, five.", "tags": []})
    call("POST", "/api/hands/install", {"toml_content": HAND})
    call("POST", "/api/hands/desk/activate", {"config": {}})
    call("POST", "/api/plugins/scaffold", {"name": "demo", "description": "Does nothing", "runtime": "bash"})
    call("POST", f"/api/agents/{agent}/prompts/versions", {"system_prompt": "Be brief."})
    memory = call("POST", "/api/memory", {"agent_id": agent, "content": "Ana prefers tea"})["memory"]["id"]
    call("POST", f"/api/memory/agents/{agent}/relations", [{"subject": "Engine", "subject_type": "project", "relation": "needs", "object": "Coal", "object_type": "concept"}])
    call("POST", "/api/world/snapshots", {"label": "before the storm"})
    rehearsal = call("POST", "/api/world/rehearsals", {"for": "1h"})["id"]
    until("the rehearsal has ended", lambda: call("GET", f"/api/world/rehearsals/{rehearsal}")["state"] == "completed")
    return [
        (f"chat/{agent}", "scout", ["New agent", "New session"]),
        (f"agent/{agent}", "scout", ["More for scout"]),
        ("inbox", "Please: deploy", ["Approve deploy", "Reject deploy"]),
        ("money", "Global budget", ["Budgets"]),
        ("money/audit", "agent spawned", []),
        ("money/approvals", "Please: deploy", ["Approve", "Reject", "Set up", "Select deploy"]),
        ("settings", "OpenAI", ["Set key"]),
        ("settings/models", "cheap", ["Add a model", "Add", "Check for updates", "Remove the alias cheap"]),
        ("settings/config", "[budget]", ["Reload the file"]),
        ("settings/health", "Built with", []),
        ("settings/people", "monitoring", ["Add a user", "Create a key", "Revoke monitoring"]),
        ("connections", "docs", ["Add a server", "Reload", "More for docs"]),
        ("connections/servers/docs", "Error output", ["Reconnect", "Edit", "More for docs"]),
        ("connections/catalog", "Notes", ["Install Notes"]),
        ("connections/channels", "desk-chat", ["Add a channel", "Reload", "Allow a chat", "More for desk-chat"]),
        ("connections/channels/desk-chat", "What was sent", ["Test", "Edit", "More for desk-chat"]),
        ("connections/channels/registry", "Zulip", ["Set up Zulip"]),
        ("connections/agents", "No external agents yet", ["Discover an agent"]),
        ("connections/peers", "This node", []),
        ("library", "haiku", ["Install", "Create", "Reload"]),
        ("library/skills/haiku", "Five, seven, five.", ["Remove"]),
        ("library/hands", "Front desk", ["Install", "Reload", "Start Front desk"]),
        ("library/hands/desk", "What it needs", ["Remove", "Start", "Check again"]),
        ("library/running", "Visitors", ["Pause", "Settings", "End"]),
        ("library/extensions", "Notes", ["Install Notes"]),
        ("library/plugins", "demo", ["Install", "Create", "Disable demo"]),
        ("library/plugins/demo", "Runtime", ["Reload", "Remove", "Disable"]),
        (f"library/prompts/{agent}", "Version 1", ["Compare", "Save a version"]),
        ("memory", "Ana prefers tea", ["Add an entry"]),
        (f"memory?entry={memory}", "Ana prefers tea", ["Edit", "Delete"]),
        (f"memory/graph?agent={agent}&entity=project%3Aengine", "Coal", ["Delete the entity"]),
        ("memory/upkeep", "Settings in effect", ["Clean up", "Lower confidence"]),
        ("world/snapshots", "before the storm", ["Create a snapshot", "Restore", "Delete before the storm"]),
        ("world/rehearsals", "Forecast cost", ["Rehearse", "Delete this rehearsal"]),
    ]


@config(KEY + FULL + "[prompt_intelligence]\nenabled = true\n" + REAL)
def case_narrowed(stage):
    """The key of an admin that may only read sees every page, and no button that changes something."""
    addresses = fill_installation(stage)
    key = stage.daemon.call("POST", "/api/keys", {"name": "monitoring", "scopes": ["read"]})["key"]
    owner = sign_in(stage, "the-key-of-the-configuration")
    reader = sign_in(stage, key)
    expect(reader.locator(".rail-links a[data-page]")).to_have_count(7)
    assert names(reader) == ["chat", "world", "memory", "connections", "library", "money", "settings"], names(reader)
    for address, shown, buttons in addresses:
        for page in [owner, reader]:
            page.goto(f"{stage.daemon.url}/#/{address}")
            expect(page.locator("#page").get_by_text(shown).locator("visible=true").first, address).to_be_visible()
        for name in buttons:
            pattern = re.compile(f"^{re.escape(name)}(:|$)")
            control = lambda page: page.locator("#page").get_by_role("button", name=pattern).or_(page.locator("#page").get_by_role("checkbox", name=pattern))
            expect(control(owner).first, f"{address}: {name}").to_be_visible()
            expect(control(reader), f"{address}: {name}").to_have_count(0)
        expect(reader.locator("#page").get_by_role("button", name=CHANGES), address).to_have_count(0)
        # Menus of the chat and of prompts have entries that only read.
        if not address.startswith(("chat", "library/prompts")):
            expect(reader.locator("#page .menu-anchor"), address).to_have_count(0)
        access.check(reader, f"{address} with a key to read")
    reader.goto(stage.daemon.url + "/#/settings/config")
    expect(reader.get_by_text("Your key may not change the configuration.")).to_be_visible()
    expect(reader.locator(".config-line :is(input, select, textarea):enabled")).to_have_count(0)
    sections = reader.get_by_role("navigation", name="Sections of Settings")
    expect(sections.get_by_role("link", name="Health")).to_be_visible()
    expect(sections.get_by_role("link", name=re.compile("Backups|Terminal"))).to_have_count(0)
    # A shortcut for what is refused does nothing either.
    for page, dialogs in [(owner, 1), (reader, 0)]:
        page.goto(stage.daemon.url + "/#/library")
        expect(page.locator("#page").get_by_text("haiku").locator("visible=true").first).to_be_visible()
        page.keyboard.press("n")
        expect(page.get_by_role("dialog")).to_have_count(dialogs)
    stage.shoot("people-reader", reader)


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
