"""Settings in the browser: keys of providers, models and aliases, the configuration, backups, health."""

import re
import sys

from playwright.sync_api import expect

import access
import stage as stages
from stage import config, until


def toast(page, text):
    expect(page.locator(".toast").filter(has_text=text).first).to_be_visible()


def has(stage, path):
    """Does this daemon have the route?"""
    return path in stage.daemon.call("GET", "/api/openapi.json")["paths"]


def card(page, name):
    return page.locator(f'.provider[data-name="{name}"]')


def hold(page, pattern):
    """Requests to these addresses wait from now on: gives those that do, and what lets them and all that follow go on."""
    waiting = []
    held = {"on": True}

    def caught(route):
        if held["on"]:
            waiting.append(route)
        else:
            route.continue_()

    def let():
        held["on"] = False
        for route in waiting:
            route.continue_()

    page.route(pattern, caught)
    return waiting, let


def case_providers(stage):
    """A key goes into the vault and is never shown; a test says how long the provider took, or what is wrong."""
    stage.expect_refusals(400, 409, 502)
    page = stage.open("#/settings")
    expect(page.locator(".provider").first).to_contain_text("default")
    card(page, "builtin").get_by_role("button", name="Test").click()
    expect(card(page, "builtin").get_by_role("status")).to_contain_text(re.compile(r"responded in \d+ ms"))
    # The default model is shown and tested where agents ask it, with the key from the environment.
    expect(card(page, "openai")).to_contain_text("key in the environment")
    expect(card(page, "openai")).to_contain_text("http://127.0.0.1:")
    card(page, "openai").get_by_role("button", name="Test").click()
    expect(card(page, "openai").get_by_role("status")).to_contain_text(re.compile(r"echo-1 responded in \d+ ms"))
    stage.model.respond = lambda messages, body: {"status": 401}
    card(page, "openai").get_by_role("button", name="Test").click()
    expect(card(page, "openai").get_by_role("status")).to_contain_text("Replace the key.")
    page.get_by_label("Search providers").fill("groq")
    card(page, "groq").get_by_role("button", name="More for").click()
    page.get_by_role("menuitem", name="Test").click()
    expect(card(page, "groq").get_by_role("status")).to_have_text("Groq has no API key.")
    card(page, "groq").get_by_role("button", name="Set key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("API key")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("API key").fill("gsk-this-is-a-secret")
    expect(dialog.get_by_label("API key")).to_have_attribute("type", "password")
    access.check(page, "the form of a key")
    dialog.get_by_role("button", name="Save").click()
    toast(page, "Key saved in the vault")
    expect(card(page, "groq")).to_contain_text("key in the vault")
    assert "gsk-this-is-a-secret" not in page.content()
    card(page, "groq").get_by_role("button", name="More for").click()
    page.get_by_role("menuitem", name="Delete key").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(card(page, "groq")).to_contain_text("no key")


def case_a_test_leaves_the_other_providers_alone(stage):
    """What a test says comes to the card of its provider; a menu that was opened on another one meanwhile stays."""
    page = stage.open("#/settings")
    asked, let = hold(page, "**/api/providers/builtin/test")
    card(page, "builtin").get_by_role("button", name="Test").click()
    until("the provider is tested", lambda: page.evaluate("true") and asked)
    card(page, "groq").get_by_role("button", name="More for").click()
    first = page.get_by_role("menuitem", name="Change endpoint")
    expect(first).to_be_focused()
    let()
    expect(card(page, "builtin").get_by_role("status")).to_contain_text(re.compile(r"responded in \d+ ms"))
    expect(first).to_be_focused()
    # And whoever waits for it keeps the focus.
    page.keyboard.press("Escape")
    test = card(page, "builtin").get_by_role("button", name="Test")
    test.focus()
    with page.expect_response("**/api/providers/builtin/test"):
        page.keyboard.press("Enter")
    expect(test).to_be_focused()


DEVICE = ('[providers.acme]\nbase_url = "{scripted}/v1"\napi_key_env = "NO_SUCH_KEY"\ndevice_auth_url = "{scripted}/device"\n'
          'token_url = "{scripted}/token"\nclient_id = "client-1"\n')
#: What a server of sign-ins says: the code to type, and that nobody typed it yet.
DEVICE_CODE = {"device_code": "d-1", "user_code": "WDJB-MJHT", "verification_uri": "https://login.example/device", "expires_in": 900, "interval": 0}
PENDING = (400, {"error": "authorization_pending"})
OLLAMA = {
    "/api/tags": (200, {"models": [{"name": "llama3.3:70b", "size": 42_000_000_000}, {"name": "qwen3:8b", "size": 5_200_000_000}]}),
    "/api/version": (200, {"version": "0.12.3"}),
    "/api/ps": (200, {"models": [{"name": "qwen3:8b"}]}),
    "/api/show": (200, {"model_info": {"llama.context_length": 131072}}),
}


@config(DEVICE)
def case_sign_in(stage):
    """A sign-in by a device flow: the code is shown; a refusal says so; after it was granted the provider is ready."""
    stage.scripted.answers = {"/device": (200, DEVICE_CODE), "/token": PENDING}
    page = stage.open("#/settings")
    page.get_by_label("Search providers").fill("acme")
    card(page, "acme").get_by_role("button", name="Sign in").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".user-code")).to_have_text("WDJB-MJHT")
    expect(dialog.get_by_role("link")).to_have_attribute("href", "https://login.example/device")
    expect(dialog.get_by_role("status")).to_contain_text("Waiting for you to enter")
    access.check(page, "the code of a sign-in")
    stage.shoot("settings-sign-in")
    stage.scripted.answers["/token"] = (400, {"error": "access_denied"})
    expect(dialog.get_by_role("status")).to_contain_text("refused the sign-in")
    stage.scripted.answers["/token"] = PENDING
    dialog.get_by_role("button", name="Start again").click()
    expect(dialog.get_by_role("status")).to_contain_text("Waiting for you to enter")
    stage.scripted.answers["/token"] = (200, {"access_token": "grant-canary", "token_type": "bearer", "expires_in": 3600})
    toast(page, "Signed in to acme")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(card(page, "acme")).to_contain_text("signed in")
    assert "canary" not in page.content()
    # One that is closed is given up: nothing is asked any more.
    card(page, "acme").get_by_role("button", name="Sign in").click()
    expect(dialog.locator(".user-code")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@config('[providers.ollama]\nbase_url = "{scripted}"\n[providers.vllm]\nbase_url = "{scripted}/nothing/v1"\n')
def case_detection(stage):
    """Runtimes of this machine are looked for: one runs, with its models; another does not, which is no error."""
    stage.scripted.answers = OLLAMA
    page = stage.open("#/settings")
    card(page, "ollama").get_by_role("button", name="Detect").click()
    found = card(page, "ollama").get_by_role("status")
    expect(found).to_contain_text("Running, version 0.12.3, with 2 models")
    expect(found).to_contain_text("llama3.3:70b")
    card(page, "vllm").get_by_role("button", name="Detect").click()
    expect(card(page, "vllm").get_by_role("status")).to_contain_text("404")
    access.check(page, "what was looked for")
    stage.shoot("settings-detection")


def case_models(stage):
    """The catalog is searched; an alias and a model of one's own come and go."""
    stage.expect_refusals(400, 404)
    page = stage.open("#/settings/models")
    table = page.get_by_role("table", name="Models")
    page.get_by_label("Search models").fill("claude vision")
    expect(table.get_by_role("row").nth(1)).to_contain_text("Claude")
    assert "openai" not in table.inner_text()
    page.get_by_label("Search models").fill("")
    page.get_by_role("button", name="Add", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Alias").fill("cheap")
    dialog.get_by_label("Model").fill("no-such-model")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.locator(".fault").filter(has_text="no-such-model")).to_be_visible()
    dialog.get_by_label("Model").fill("gpt-4o-mini")
    dialog.get_by_role("button", name="Add").click()
    expect(page.get_by_role("listitem").filter(has_text="cheap")).to_be_visible()
    page.get_by_role("button", name="Add a model").click()
    dialog.get_by_label("Id", exact=True).fill("house-model")
    dialog.get_by_label("Provider").fill("ollama")
    dialog.get_by_label("Context in tokens").fill("32768")
    access.check(page, "the form of a model")
    dialog.get_by_role("button", name="Add").click()
    # An older toast may say the same: the dialog must be gone before what is behind it is filled.
    expect(dialog).to_be_hidden()
    toast(page, "Added")
    page.get_by_label("Search models").fill("house-model")
    expect(table).to_contain_text("yours")
    table.get_by_role("button").filter(has_text="house-model").click()
    dialog.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").filter(has_text="This also deletes its aliases").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No matching models")).to_be_visible()
    page.get_by_role("button", name="Remove the alias cheap").click()
    dialog.get_by_role("button", name="Remove").click()
    until("the alias is gone", lambda: "cheap" not in stage.daemon.call("GET", "/api/models/aliases")["aliases"])


def line(page, key):
    return page.locator(f".config-line[data-key='{key}']")


def case_config(stage):
    """A key is set with its faults at the field; what needs a restart says so; what may not be set here cannot be."""
    page = stage.open("#/settings/config")
    key = line(page, "triggers.max_depth")
    key.get_by_role("spinbutton").fill("1000")
    expect(key.get_by_role("alert")).to_have_text("It must be from 1 to 100.")
    expect(key.get_by_role("button", name="Save")).to_be_disabled()
    key.get_by_role("spinbutton").fill("12")
    key.get_by_role("button", name="Save").click()
    toast(page, "triggers.max_depth is now in effect")
    assert stage.daemon.call("GET", "/api/config")["triggers"]["max_depth"] == 12
    expect(line(page, "triggers.max_depth")).to_contain_text("set")
    page.get_by_role("button", name="Restore the default of triggers.max_depth").click()
    until("the default is back", lambda: stage.daemon.call("GET", "/api/config")["triggers"]["max_depth"] == 8)

    line(page, "world.tick_hz").get_by_role("spinbutton").fill("30")
    line(page, "world.tick_hz").get_by_role("button", name="Save").click()
    toast(page, "at the next start")
    expect(page.get_by_role("button", name="Restore the default of triggers.max_depth")).to_have_count(0)
    expect(page.locator(".notice.warn")).to_contain_text("tick_hz")
    expect(line(page, "api_listen")).to_contain_text("file only")
    expect(line(page, "api_listen").get_by_role("textbox")).to_be_disabled()
    page.get_by_label("Search keys").fill("max_depth")
    expect(page.locator(".config-line:visible")).to_have_count(1)
    page.get_by_label("Search keys").fill("")
    page.get_by_label("Show").select_option("set")
    expect(line(page, "world.tick_hz")).to_be_visible()
    expect(line(page, "log_level")).to_be_hidden()

    page.get_by_label("Show").select_option("all")
    page.get_by_role("button", name="Add one under [prices]").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("openai/house-1")
    dialog.get_by_label("input_per_m", exact=True).fill("0.5")
    dialog.get_by_role("button", name="Add").click()
    expect(line(page, 'prices."openai/house-1".input_per_m')).to_be_visible()
    assert stage.daemon.call("GET", "/api/config")["prices"]["openai/house-1"]["input_per_m"] == 0.5


def save_and_hold(page, key, value):
    """Saves a figure; what the page then reads waits for what this gives."""
    expect(line(page, key)).to_be_visible()
    asked, let = hold(page, "**/api/config")
    line(page, key).get_by_role("spinbutton").fill(value)
    line(page, key).get_by_role("button", name="Save").click()
    # A call of the page has the browser's requests come in.
    until("the page reads what is stored", lambda: page.evaluate("true") and asked)
    return let


def case_typing_while_another_line_is_saved(stage):
    """Whoever types in a line while another one is saved keeps the focus, the caret and the text, also when lines are added."""
    page = stage.open("#/settings/config")
    depth = line(page, "triggers.max_depth")
    let = save_and_hold(page, "triggers.max_depth", "12")
    model = line(page, "default_model.model").get_by_role("textbox")
    model.fill("half a model")
    model.evaluate("(node) => node.setSelectionRange(5, 5)")
    let()
    expect(depth.locator(".config-tags")).to_contain_text("set")
    expect(depth.get_by_role("button", name="Save")).to_be_hidden()
    assert page.evaluate("document.activeElement.id") == "config-default_model-model"
    page.keyboard.type("of ")
    expect(model).to_have_value("half of a model")
    expect(line(page, "default_model.model").get_by_role("button", name="Save")).to_be_visible()

    # Another price comes into the file meanwhile: its section has more lines then.
    added = 'prices."openai/house-1".input_per_m'
    let = save_and_hold(page, "triggers.max_depth", "13")
    price = line(page, 'prices."openai/echo-1".input_per_m').get_by_role("spinbutton")
    price.fill("3.5")
    stage.daemon.call("POST", "/api/config/set", {"path": added, "value": 0.5})
    let()
    expect(line(page, added)).to_be_visible()
    assert page.evaluate("document.activeElement.closest('.config-line')?.dataset.key") == 'prices."openai/echo-1".input_per_m'
    expect(price).to_have_value("3.5")
    expect(depth.get_by_role("spinbutton")).to_have_value("13")
    expect(model).to_have_value("half of a model")
    assert stage.daemon.call("GET", "/api/config")["default_model"]["model"] == "echo-1"


def case_backups(stage):
    """A backup is made, looked into, restored after a dry run, and deleted. Without these routes the page says so."""
    if not has(stage, "/api/backups"):
        stage.expect_refusals(404)
        page = stage.open("#/settings/backups")
        expect(page.get_by_role("heading", name="Not available in this daemon")).to_be_visible()
        return
    agent = stage.daemon.agent("kept")
    page = stage.open("#/settings/backups")
    expect(page.get_by_role("heading", name="No backups yet")).to_be_visible()
    page.get_by_role("button", name="Create a backup").first.click()
    table = page.get_by_role("table", name="Backups")
    expect(table.get_by_role("row")).to_have_count(2)
    name = stage.daemon.call("GET", "/api/backups")["backups"][0]["filename"]
    stage.daemon.call("DELETE", f"/api/agents/{agent}")
    table.get_by_role("button", name="Restore…").click()
    dialog = page.get_by_role("dialog")
    access.check(page, "the choice of components")
    dialog.get_by_role("button", name="Preview changes").click()
    expect(dialog.get_by_role("heading", name="Changes")).to_be_visible()
    # The agent that is gone would be added.
    expect(dialog.get_by_role("row").filter(has_text="agents").get_by_role("cell").first).not_to_have_text("0")
    stage.shoot("settings-backups-dry-run")
    dialog.get_by_role("button", name="Restore").click()
    toast(page, "Restored")
    until("the agent is back", lambda: stage.daemon.call("GET", f"/api/agents/{agent}")["name"] == "kept")
    table.get_by_role("button", name=f"More for {name}").click()
    page.get_by_role("menuitem", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    until("deleted", lambda: all(one["filename"] != name for one in stage.daemon.call("GET", "/api/backups")["backups"]))


def case_health(stage):
    """The checks say what is well and what to look at."""
    page = stage.open("#/settings/health")
    checks = page.get_by_role("list", name="Checks").get_by_role("listitem")
    expect(checks.filter(has_text="Store").first).to_contain_text("The store accepts writes.")
    # On this machine no key is needed: that is said, and nothing to be mended.
    key = checks.filter(has=page.get_by_text("API key", exact=True))
    expect(key).to_have_class("check-note")
    expect(key).to_contain_text("Set api_key in config.toml before")
    access.check(page, "the health of a daemon")
    # No command is on the allowlist: none runs.
    expect(checks.filter(has_text="Sandbox")).to_contain_text("Off: no commands are on the allowlist.")
    expect(checks.filter(has=page.get_by_text("Providers", exact=True))).to_contain_text("in use, none with errors.")
    # What agents depend on is a part of the health: an agent without a key, and a provider and a schedule that failed.
    agent = stage.daemon.agent("keyless", '[model]\nprovider = "anthropic"\nmodel = "claude-sonnet-4-5"\n')
    ada = stage.daemon.agent("ada")
    stage.model.respond = lambda messages, body: {"status": 400}
    job = stage.daemon.call("POST", "/api/schedules", {"agent_id": ada, "cron": "@daily", "prompt": "water the garden", "name": "watering"})
    stage.daemon.call("POST", f"/api/schedules/{job['id']}/run")
    until("the run failed", lambda: stage.daemon.call("GET", f"/api/schedules/{job['id']}").get("last_result"))
    page.reload()
    expect(checks.filter(has=page.get_by_text("Providers", exact=True))).to_have_class("check-bad")
    expect(checks.filter(has=page.get_by_text("Providers", exact=True))).to_contain_text("No API key for Anthropic.")
    expect(checks.filter(has=page.get_by_text("Schedules", exact=True))).to_contain_text("failed.")
    expect(checks.filter(has=page.get_by_text("Channels", exact=True))).to_contain_text("None are set up.")
    access.check(page, "the health of a daemon with trouble")
    stage.shoot("health-trouble")
    stage.daemon.call("DELETE", f"/api/agents/{agent}")
    # Beyond it, the daemon needs one; and ticks are judged by the last minute.
    config, world = (stage.daemon.call("GET", f"/api/{name}") for name in ("config", "world"))
    shown = {"config": {**config, "api_listen": "0.0.0.0:4545"}, "world": {**world, "beat": {**world["beat"], "hz": 20, "total": 9000, "missed_total": 5000, "missed_last_minute": 60}}}
    for name, body in shown.items():
        page.route(f"{stage.daemon.url}/api/{name}", lambda route, _, name=name: route.fulfill(json=shown[name]))
    page.reload()
    expect(key).to_have_class("check-bad")
    expect(page.get_by_text(re.compile(r"checks needs? attention"))).to_be_visible()
    ticks = checks.filter(has_text="Speed")
    expect(ticks).to_have_class("check-good")
    expect(ticks).to_contain_text("5 % of the work of the last minute was late (60 of 1,200 ticks).")
    shown["world"]["beat"]["missed_last_minute"] = 61
    page.reload()
    expect(ticks).to_have_class("check-bad")


def case_pictures(stage):
    """Every part, light and dark, on a desktop and a phone, without barriers."""
    stage.expect_refusals(404)
    stage.daemon.call("POST", "/api/models/aliases", {"alias": "cheap", "model_id": "gpt-4o-mini"})
    parts = [("providers", ".provider"), ("models", ".t-body .t-row"), ("config", ".config-line"), ("backups", ".empty"), ("health", ".check-list li")]
    for name, seen in parts:
        stage.shoot_all(f"settings-{name}", f"#/settings/{name}", lambda page, seen=seen: page.locator(seen).first.wait_for())


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
