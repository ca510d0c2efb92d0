"""Users and keys in the browser: they are made and revoked, and the page of each key has no button that is refused."""

import os
import re
import subprocess
import sys

from playwright.sync_api import expect

import access
import stage as stages
from library import cards
from stage import config, until

KEY = 'api_key = "the-key-of-the-configuration"\n'


def password_hash(password):
    """As the command line makes it."""
    made = subprocess.run([os.environ["AGENTSVC_BIN"], "user", "hash-password"], input=password + "\n", text=True, capture_output=True, check=True)
    return made.stdout.strip()


PASSWORD = f'[[users]]\nname = "ann"\nrole = "admin"\npassword_hash = "{password_hash("correct horse")}"\n'


def sign_in(stage, key, hash=""):
    """The page of another key, in a context of its own. Each refused request would be a fault of the case."""
    page = stage.new_page()
    stage.allowed = ["status of 401"]
    stage.open(hash, page)
    login = page.get_by_role("dialog", name="Sign in to agentsvc")
    login.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    expect(login).to_have_count(0)
    return page


def person(stage, name, role):
    user = stage.daemon.call("POST", "/api/users", {"name": name, "role": role})["id"]
    return user, stage.daemon.call("POST", "/api/keys", {"name": f"{name}-key", "user_id": user})["key"]


def names(page):
    """The pages of the navigation."""
    return page.locator(".rail-links a[data-page]").evaluate_all("(links) => links.map((link) => link.dataset.page)")


@config(KEY)
def case_keys(stage):
    """A user is added, gets a key that is shown once, has another role, and goes; a key is revoked."""
    page = sign_in(stage, "the-key-of-the-configuration", "#/settings/people")
    expect(page.get_by_text("One key for everything")).to_be_visible()
    page.get_by_role("button", name="Add a user").click()
    dialog = page.get_by_role("dialog")
    stage.expect_refusals(400)
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Name").fill("ann")
    dialog.get_by_label("Chats").fill("telegram=123")
    access.check(page, "the form of a user")
    dialog.get_by_role("button", name="Add", exact=True).click()
    users = page.get_by_role("table", name="Users")
    expect(users).to_contain_text("telegram 123")
    page.get_by_role("button", name="Create a key").click()
    dialog.get_by_label("Name").fill("laptop")
    dialog.get_by_label("Belongs to", exact=True).select_option(label="ann (user)")
    dialog.get_by_label("Expires").select_option(label="In 7 days")
    access.check(page, "the form of a key")
    dialog.get_by_role("button", name="Create", exact=True).click()
    made = page.locator(".made-key")
    expect(made).to_have_text(re.compile("^asvc_[0-9a-f]{64}$"))
    key = made.text_content()
    stage.shoot("people-made")
    dialog.get_by_role("button", name="Done").click()
    keys = page.get_by_role("table", name="API keys")
    expect(keys).to_contain_text("laptop")
    # The dialog goes a moment after the click.
    expect(made).to_have_count(0)
    assert key not in page.content()
    page.get_by_role("button", name="Edit ann").click()
    dialog.get_by_label("Role").select_option("viewer")
    dialog.get_by_role("button", name="Save").click()
    expect(keys).to_contain_text("viewer")
    access.check(page, "users and keys")
    stage.shoot("people")
    page.get_by_role("button", name="Revoke laptop").click()
    dialog.get_by_role("button", name="Revoke", exact=True).click()
    expect(keys).to_be_hidden()
    page.get_by_role("button", name="Delete ann").click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("One key for everything")).to_be_visible()
    kinds = [entry["event_type"] for entry in stage.daemon.call("GET", "/api/audit/recent")["entries"]]
    assert {"key_created", "key_revoked", "user_deleted"} <= set(kinds), kinds


@config(KEY + "[pairing]\nenabled = true\n")
def case_devices(stage):
    """A device is paired with the code of the page, and removed; a notification without a push service says so."""
    page = sign_in(stage, "the-key-of-the-configuration", "#/settings/devices")
    expect(page.get_by_text("No device is paired")).to_be_visible()
    page.get_by_role("button", name="Pair a device").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Chat with agents")).to_be_checked()
    expect(dialog.get_by_label("Change the installation")).not_to_be_checked()
    access.check(page, "the rights of a device")
    dialog.get_by_role("button", name="Create a code").click()
    expect(page.get_by_role("img", name="QR code of the device")).to_be_visible()
    code = page.locator(".made-code").text_content()
    assert re.fullmatch("[2-9A-Z]{4}-[2-9A-Z]{4}", code), code
    access.check(page, "the code of a device")
    stage.shoot("devices-code")
    stage.daemon.call("POST", "/api/pairing/complete", {"pairing_code": code, "display_name": "Phone of Ann", "platform": "ios"})
    dialog.get_by_role("button", name="Done").click()
    devices = page.get_by_role("table", name="Devices")
    expect(devices).to_contain_text("Phone of Ann")
    expect(devices).to_contain_text("only read, chat")
    access.check(page, "devices")
    stage.shoot("devices")
    page.get_by_role("button", name="Send a notification").click()
    dialog.get_by_label("Message").fill("hello")
    dialog.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("push_provider is not set")).to_be_visible()
    page.get_by_role("button", name="Remove Phone of Ann").click()
    dialog.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("No device is paired")).to_be_visible()


@config(KEY + "[prompt_intelligence]\nenabled = true\n")
def case_roles(stage):
    """A user and a viewer see their own agents, and no page, button or menu entry that would be refused."""
    stage.daemon.agent("shared")
    _, key = person(stage, "ann", "user")
    eve_id, eve_key = person(stage, "eve", "viewer")
    page = sign_in(stage, key)
    expect(page.get_by_text("Welcome to agentsvc")).to_be_visible()
    assert names(page) == ["chat", "memory", "automation", "library"], names(page)
    expect(page.get_by_text("shared")).to_have_count(0)
    page.locator(".conversation").get_by_role("button", name="New agent").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=re.compile("Create")).last.wait_for()
    page.keyboard.press("Escape")
    agents = api(page, "POST", "/api/agents", {"manifest_toml": 'name = "anns"\n'})
    page.goto(stage.daemon.url + f"/#/chat/{agents['agent_id']}")
    page.reload()
    expect(page.locator(".composer textarea")).to_be_enabled()
    page.locator(".composer textarea").fill("hello")
    page.keyboard.press("Enter")
    expect(page.locator(".log")).to_contain_text("hello")
    page.locator(".chat-head").get_by_role("button", name="More").click()
    expect(page.get_by_role("menuitem", name="Clone the agent")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Stop the agent")).to_have_count(0)
    page.keyboard.press("Escape")
    access.check(page, "the chat of a user")
    for tab in ["", "/triggers", "/workflows", "/goals"]:
        page.goto(stage.daemon.url + f"/#/automation{tab}")
        page.locator(".tab-panel .empty, .tab-panel .stack").first.wait_for()
    tasks_of_a_user(stage, page)
    graph_of_a_user(stage, page, agents["agent_id"])
    prompts_of_a_user(stage, page)
    page.goto(stage.daemon.url + "/#/library/media")
    expect(page.get_by_role("heading", name="No media yet")).to_be_visible()
    access.check(page, "the media of a user")
    page.goto(stage.daemon.url + f"/#/agent/{agents['agent_id']}")
    expect(page.get_by_role("region", name="Recent runs")).to_contain_text("done")
    page.goto(stage.daemon.url + f"/#/agent/{agents['agent_id']}/settings")
    expect(page.get_by_label("Name", exact=True)).to_have_value("anns")
    expect(page.get_by_role("link", name=re.compile("^Inbox"))).to_have_count(0)
    # An address that is not for this key leads to the chat.
    page.goto(stage.daemon.url + "/#/settings")
    expect(page.locator(".chat")).to_be_visible()
    assert not stage.faults, stage.faults

    page.close()
    stage.daemon.call("PUT", f"/api/agents/{agents['agent_id']}/owner", {"user_id": eve_id})
    viewer = sign_in(stage, eve_key)
    expect(viewer.locator(".log")).to_contain_text("hello")
    assert names(viewer) == ["chat", "memory", "library"], names(viewer)
    expect(viewer.locator(".composer")).to_have_count(0)
    for name in ["New agent", "New session", "Ask again"]:
        expect(viewer.get_by_role("button", name=name)).to_have_count(0)
    viewer.locator(".chat-head").get_by_role("button", name="More").click()
    entries = viewer.get_by_role("menuitem")
    expect(entries).to_have_text(["Copy as Markdown", "Export as Markdown", "Export as JSON", "Export as JSON lines", "Overview and settings"])
    viewer.keyboard.press("Escape")
    access.check(viewer, "the chat of a viewer")
    viewer.get_by_role("link", name="Overview and settings of the agent").click()
    expect(viewer.get_by_role("region", name="Recent runs")).to_contain_text("done")
    expect(viewer.get_by_role("complementary", name="Test chat")).to_have_count(0)
    viewer.get_by_role("link", name="Settings", exact=True).click()
    expect(viewer.get_by_text("Your key may not change agents.")).to_be_visible()
    access.check(viewer, "an agent of a viewer")
    viewer.goto(stage.daemon.url + f"/#/library/prompts/{agents['agent_id']}")
    cards(viewer, "Versions").get_by_role("button", name="More for").click()
    expect(viewer.get_by_role("menuitem")).to_have_text(["Show the prompt", "Show what changed"])
    viewer.keyboard.press("Escape")
    expect(viewer.locator(".tab-actions button")).to_have_count(0)
    access.check(viewer, "the prompts of a viewer")
    viewer.goto(stage.daemon.url + f"/#/memory?agent={agents['agent_id']}&entity=project%3Aengine")
    expect(viewer.get_by_role("list", name="Relations of Engine")).to_contain_text("Coal")
    expect(viewer.get_by_role("button", name=re.compile("^Delete"))).to_have_count(0)


def tasks_of_a_user(stage, page):
    """A user sees and posts the tasks of their own agents."""
    stage.daemon.call("POST", "/api/tasks", {"title": "Of the installation"})
    page.goto(stage.daemon.url + "/#/automation/tasks")
    expect(page.get_by_role("heading", name="The queue is empty")).to_be_visible()
    page.get_by_role("button", name="New task").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Count the apples")
    dialog.get_by_label("Assignee").fill("anns")
    dialog.get_by_role("button", name="Create").click()
    pending = page.get_by_role("region", name="Pending")
    expect(pending).to_contain_text("Count the apples")
    expect(pending.locator(".badge").first).to_have_text("1")
    access.check(page, "the tasks of a user")


def graph_of_a_user(stage, page, agent):
    """Of the memory, a user sees the knowledge graphs of their own agents."""
    api(page, "POST", f"/api/memory/agents/{agent}/relations", [{"subject": "Engine", "subject_type": "project", "relation": "needs", "object": "Coal", "object_type": "concept"}])
    page.goto(stage.daemon.url + "/#/memory")
    expect(page.get_by_role("navigation", name="Sections of Memory").get_by_role("link")).to_have_text(["Knowledge graph"])
    page.get_by_label("Agent", exact=True).fill("anns")
    page.keyboard.press("Tab")
    page.get_by_role("table", name="Entities").get_by_role("button", name="Engine").click()
    expect(page.get_by_role("list", name="Relations of Engine")).to_contain_text("Coal")
    expect(page.get_by_role("button", name="Delete the entity")).to_be_visible()
    access.check(page, "the graph of a user")


def prompts_of_a_user(stage, page):
    """A user chooses one of their own agents, and saves a version of its prompt."""
    page.goto(stage.daemon.url + "/#/library")
    expect(page.get_by_role("heading", name="Choose an agent")).to_be_visible()
    expect(page.get_by_role("navigation", name="Sections of Library").get_by_role("link")).to_have_text(["Prompts", "Media"])
    # Another's agent is not found.
    page.get_by_label("Agent", exact=True).fill("shared")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_label("Agent", exact=True)).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Agent", exact=True).fill("anns")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("No versions yet.")).to_be_visible()
    page.get_by_role("button", name="Save a version").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("System prompt").fill("Be kind.")
    dialog.get_by_role("button", name="Save", exact=True).click()
    cards(page, "Versions").get_by_role("button", name="More for").click()
    page.get_by_role("menuitem", name="Activate").click()
    dialog.get_by_role("button", name="Activate", exact=True).click()
    expect(cards(page, "Versions")).to_contain_text("active")
    access.check(page, "the prompts of a user")


@config(KEY + "[budget]\nuser_daily_limit_usd = 4\n" + '[[users]]\nname = "zoe"\nrole = "viewer"\n')
def case_budgets(stage):
    """An admin sees what the agents of each user spend and sets limits; a user sees their own, and nobody else's."""
    ann_id, ann_key = person(stage, "ann", "user")
    bob_id, _ = person(stage, "bob", "user")
    page = sign_in(stage, "the-key-of-the-configuration", "#/settings/people")
    users = page.get_by_role("table", name="Users")
    row = lambda name: users.get_by_role("row").filter(has=page.get_by_role("button", name=f"Budget of {name}"))
    for name in ["ann", "bob", "zoe"]:
        expect(row(name)).to_contain_text("$0 of $4.00 today")
        expect(row(name)).to_contain_text("$0 this month")
    # A wrong limit is refused at the field that the daemon names, and changes nothing.
    stage.expect_refusals(400)
    page.get_by_role("button", name="Budget of ann").click()
    dialog = page.get_by_role("dialog", name="Budget of ann")
    day, month, hour = (dialog.get_by_label(label) for label in ["Daily limit (USD)", "Monthly limit (USD)", "Hourly limit (tokens)"])
    expect(day).to_have_value("4")
    for control, wrong, right in [(day, "-1", "0.5"), (month, "-0.01", "20"), (hour, "1.5", "")]:
        control.fill(wrong)
        dialog.get_by_role("button", name="Save").click()
        expect(control).to_have_attribute("aria-invalid", "true")
        expect(dialog.locator("[aria-invalid=true]")).to_have_count(1)
        control.fill(right)
    assert stage.daemon.call("GET", f"/api/budget/users/{ann_id}")["daily_limit_usd"] == 4
    access.check(page, "the budget of a user")
    stage.shoot("people-budget", page)
    dialog.get_by_role("button", name="Save").click()
    expect(row("ann")).to_contain_text("$0 of $0.50 today")
    expect(row("ann")).to_contain_text("$0 of $20.00 this month")
    expect(row("bob")).to_contain_text("$0 of $4.00 today")

    # What ann's agent spends is on both pages; the limit ends her turns, and hers alone.
    user = sign_in(stage, ann_key)
    stage.expect_refusals(404)
    agent = api(user, "POST", "/api/agents", {"manifest_toml": 'name = "anns"\n'})["agent_id"]
    api(user, "POST", f"/api/agents/{agent}/message", {"message": "hello"})
    spent = stage.daemon.call("GET", f"/api/budget/users/{ann_id}")["today_spent_usd"]
    assert spent > 0
    shown = f"${spent:.4f}" if spent < 0.01 else f"${spent:.2f}"
    expect(row("ann")).to_contain_text(f"{shown} of $0.50 today")
    account(user)
    own = user.get_by_role("dialog", name="Your account")
    expect(own).to_contain_text("ann")
    expect(own).to_contain_text("Within limits")
    expect(own.get_by_role("meter", name=f"Today: {shown} of $0.50")).to_be_visible()
    expect(own.get_by_role("meter", name=f"This month: {shown} of $20.00")).to_be_visible()
    access.check(user, "the account of a user")
    stage.shoot("account", user)
    own.get_by_role("button", name="Close").last.click()

    page.get_by_role("button", name="Budget of ann").click()
    day.fill("0.000001")
    dialog.get_by_role("button", name="Save").click()
    expect(row("ann").locator(".danger-text")).to_contain_text("today")
    account(user)
    expect(own).to_contain_text("Requests are refused until a limit is raised or the next period starts.")
    refused = api(user, "GET", f"/api/budget/users/{bob_id}", None)
    assert "not found" in refused["error"] and "today_spent_usd" not in refused, refused
    # Those of the configuration have a budget, which is all that can be changed of them here.
    expect(row("zoe").get_by_role("button")).to_have_count(1)
    access.check(page, "users with their budgets")
    stage.shoot("people-budgets", page)
    expect(page.locator(".toast")).to_have_count(0)
    for part, name in [(page, "users with their budgets"), (user, "the account of a user")]:
        part.set_viewport_size({"width": 390, "height": 844})
        until("it is laid out anew", lambda: part.evaluate("() => document.documentElement.scrollWidth <= innerWidth"))
        access.check(part, f"{name} on a phone")
        stage.shoot(f"{name.replace(' ', '-')}-phone", part)


def account(page):
    page.locator(".rail-foot").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Your account").click()


def api(page, method, path, body):
    """A call with the key of the page."""
    script = """async ([method, path, body]) => {
      const key = sessionStorage.getItem("agentsvc-api-key");
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      return (await fetch(path, { method, headers, body: body === null ? undefined : JSON.stringify(body) })).json();
    }"""
    return page.evaluate(script, [method, path, body])


@config(KEY + PASSWORD)
def case_password(stage):
    """A person signs in with a password, sees their session, and signs out; the page never has the token."""
    page = stage.new_page()
    stage.allowed = ["status of 401"]
    stage.open("#/settings/sessions", page)
    login = page.get_by_role("dialog", name="Sign in to agentsvc")
    login.get_by_label("Name").fill("ann")
    login.get_by_label("Password").fill("wrong")
    login.get_by_role("button", name="Sign in with a password").click()
    expect(login.get_by_text("the name or the password is wrong")).to_be_visible()
    access.check(page, "the login")
    stage.shoot("login-password", page)
    login.get_by_label("Password").fill("correct horse")
    login.get_by_role("button", name="Sign in with a password").click()
    expect(login).to_have_count(0)
    sessions = page.get_by_role("table", name="Sessions")
    expect(sessions).to_contain_text("ann (this session)")
    access.check(page, "sessions")
    stage.shoot("sessions", page)
    assert page.evaluate("() => document.cookie") == "" and page.evaluate("() => sessionStorage.getItem('agentsvc-api-key')") is None
    page.get_by_role("button", name="End the session of ann").click()
    page.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    expect(page.get_by_role("dialog", name="Sign in to agentsvc")).to_be_visible()


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
