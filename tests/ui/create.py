"""The dialog of a new agent: the form, the manifest that it writes, and what is written by hand beside it."""

import random
import re
import sys
import tomllib
import urllib.request

from playwright.sync_api import expect

import access
import stage as stages

TEXTS = [
    "",
    'name = "x"',
    'name = "x" # c\n\n[model] # hi\nprovider = "p"\n# more\n[capabilities]\ntools = ["*", # [x\n "]"]\n[[triggers]]\npattern = { a = "}" }\n'
    'prompt_template = """\n[model]\nx = "\\"""" \n',
    "model.provider = 'x'\nname='y'\n[limits]\ndaily_limit_usd = 1\n",
    "[model]\r\nsystem_prompt = \'\'\'a\r\nb\'\'\'\r\nprovider=\"z\"\r\n",
    'schedule = "periodic"\n[[fallback_models]]\nprovider = "q"\n[model.x]\ny = 1\n',
    "limits = { daily_limit_usd = 2 }\nskills = [\n  'a', # one\n]\n",
    "model = {}\ncapabilities={tools=['}', '#'],x = { y = 1 }} # {\n",
    "model = { provider = 'p', system_prompt = \"\"\"a,\n}\"\"\" , z.z = 1 }\nlimits = { a = [{ b = 1 }, 2], daily_limit_usd = 1 }\n",
]
PARTS = ['"', "\\", "\n", "\r", "\t", "a", "é", "\0", "\x7f", "'", "#", "=", "[", "]", "😀", " ", "u", '"""']
FIELDS = [
    [["name"]], [["description"]], [["system_prompt"], ["model", "system_prompt"]], [["model", "provider"]],
    [["capabilities", "tools"], ["tools"]], [["skills"]], [["limits", "daily_limit_usd"]],
]
ROUNDS = 400


def case_an_agent_is_created_with_a_form(stage):
    """The form writes the manifest; what is written by hand comes back into the form, or stays; refusals stand at their fields."""
    stage.expect_refusals(400, 409)
    page = stage.open()
    page.get_by_role("button", name="New agent").first.click()
    dialog = page.get_by_role("dialog", name="New agent")
    status = dialog.get_by_role("status")
    expect(status).to_contain_text("Valid. The default model, all tools that its permissions allow.")
    name = dialog.get_by_label("Name", exact=True)
    said = 'Say "hello" to C:\\temp\n\n"""Three quotes""" stay, and so does a last one"'
    name.fill("clerk")
    dialog.get_by_label("Description").fill('Keeps "the" books\\')
    dialog.get_by_label("System prompt").fill(said)
    dialog.get_by_role("button", name="Model: Default model of the daemon").click()
    models = page.get_by_role("dialog", name="Model of the new agent")
    models.get_by_label("Search models").fill("offline")
    page.keyboard.press("Enter")
    models.get_by_role("button", name="Use this model").click()
    expect(dialog.get_by_role("button", name="Model: offline model")).to_be_focused()
    tools = dialog.get_by_label("Tools", exact=True)
    tools.select_option("Profile: research")
    expect(dialog).to_contain_text("Searches and reads the web")
    expect(status).to_contain_text("Offline model, system_time, session_search")
    tools.select_option("Only chosen tools")
    dialog.get_by_label("Chosen tools").fill("system_time,memory_*,")
    expect(status).to_contain_text("system_time, memory_*")
    dialog.get_by_text("Permissions, skills, memory and budget").click()
    dialog.get_by_label("Memory", exact=True).select_option("Off: it remembers nothing by itself")
    dialog.get_by_label("Commands", exact=True).fill("git,")
    dialog.get_by_label("Daily limit (USD)").fill("1.5")
    access.check(page, "a new agent as a form")
    stage.shoot("chat-new-agent-form")
    # A refusal stands at its field.
    dialog.get_by_label("Monthly limit (USD)").fill("-1")
    expect(dialog.get_by_role("alert").filter(has_text="Expected an amount in dollars")).to_be_visible()
    expect(dialog.get_by_label("Monthly limit (USD)")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Monthly limit (USD)").fill("")
    name.fill("assistant")
    expect(dialog.get_by_role("alert").filter(has_text="already exists")).to_be_visible()
    dialog.get_by_role("button", name="Create agent").click()
    expect(name).to_be_focused()
    name.fill("clerk")
    # By hand: what the form does not know stays in the text, and is said.
    dialog.get_by_role("button", name="TOML").click()
    manifest = dialog.get_by_label("Manifest", exact=True)
    expect(manifest).to_have_value(re.compile("daily_limit_usd = 1.5"))
    text = manifest.input_value()
    manifest.fill(text + "\n[identity]\npersona = ")
    dialog.get_by_role("button", name="Form", exact=True).click()
    expect(dialog.get_by_role("alert").filter(has_text=re.compile("line", re.IGNORECASE))).to_be_visible()
    expect(manifest).to_be_visible()
    manifest.fill(text.replace("1.5", "2.25 # dollars") + '\n[identity]\npersona = "dry"\n')
    dialog.get_by_role("button", name="Form", exact=True).click()
    expect(dialog.get_by_label("Daily limit (USD)")).to_have_value("2.25")
    expect(dialog.get_by_label("System prompt")).to_have_value(said)
    expect(dialog).to_contain_text("The TOML also sets identity.persona.")
    dialog.get_by_label("Daily limit (USD)").fill("3")
    expect(status).to_contain_text("Valid.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="clerk", level=1)).to_be_visible()
    made = next(agent for agent in stage.daemon.call("GET", "/api/agents") if agent["name"] == "clerk")
    made = stage.daemon.call("GET", f"/api/agents/{made['id']}")
    assert made["system_prompt"] == said and made["description"] == 'Keeps "the" books\\', made
    assert (made["model"]["provider"], made["model"]["model"]) == ("builtin", "builtin"), made
    toml = urllib.request.urlopen(f"{stage.daemon.url}/api/templates/clerk/toml?source=agent").read().decode()
    assert "daily_limit_usd = 3 # dollars" in toml and 'tools = ["system_time", "memory_*"]' in toml and 'shell = ["git"]' in toml and 'persona = "dry"' in toml and "enabled = false" in toml, toml
    # A table in one line is changed in its place.
    page.get_by_role("button", name="New agent").first.click()
    dialog.get_by_role("button", name="TOML").click()
    manifest.fill('name = "inline"\nlimits = { daily_limit_usd = 4, monthly_limit_usd = 9 } # dollars\nmodel = { provider = "builtin" }\n')
    expect(status).to_contain_text("Valid.")
    dialog.get_by_role("button", name="Form", exact=True).click()
    expect(dialog.get_by_label("Daily limit (USD)")).to_have_value("4")
    expect(dialog.get_by_text("The TOML also sets")).to_be_hidden()
    dialog.get_by_label("Daily limit (USD)").fill("5")
    dialog.get_by_label("Monthly limit (USD)").fill("")
    # A model that no list has is typed.
    dialog.get_by_role("button", name=re.compile("^Model: ")).click()
    models.get_by_text("A model that is not listed").click()
    models.get_by_label("Model id").fill("left out")
    models.get_by_label("Search models").fill("offline")
    page.keyboard.press("Enter")
    expect(models.get_by_label("Model id")).to_have_value("")
    models.get_by_label("Model id").fill("my-own-7b")
    models.get_by_role("button", name="Use this model").click()
    expect(models.get_by_role("alert").filter(has_text="Enter the provider")).to_be_visible()
    models.get_by_label("Provider").fill("ollama")
    access.check(page, "a model that is typed")
    models.get_by_role("button", name="Use this model").click()
    expect(dialog.get_by_role("button", name=re.compile("^Model: .*my-own-7b"))).to_be_focused()
    dialog.get_by_role("button", name="TOML").click()
    expect(manifest).to_have_value('name = "inline"\nlimits = { daily_limit_usd = 5 } # dollars\nmodel = { provider = "ollama", model = "my-own-7b" }\n')
    expect(status).to_contain_text("my-own-7b")
    phone = stage.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    stage.open("#/chat?new=agent", phone)
    dialog = phone.get_by_role("dialog", name="New agent")
    expect(dialog.get_by_role("listbox", name="Agent types")).to_be_hidden()
    dialog.get_by_text("Start from a template or another agent").click()
    dialog.get_by_role("listbox", name="Agent types").get_by_role("option").filter(has_text="analyst").click()
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("analyst")
    expect(dialog.get_by_label("Description")).to_have_value(re.compile("Answers questions"))
    access.check(phone, "a new agent as a form on a phone")


def at(values, path):
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def without(values, path):
    """`values` with nothing at `path`, and without a table that is empty then."""
    head, *rest = path
    if not rest:
        return {key: value for key, value in values.items() if key != head}
    inner = without(values[head], rest) if isinstance(values.get(head), dict) else values.get(head)
    return {key: value for key, value in {**values, head: inner}.items() if value not in (None, {})}


def case_values_are_written_as_toml(stage):
    """Whatever is typed becomes valid TOML with just that value, and the rest of the text means what it meant."""
    page = stage.open()
    dice = random.Random(7)
    word = lambda: "".join(dice.choice(PARTS) for _ in range(dice.randrange(12)))
    changes = []
    for _ in range(ROUNDS):
        paths = dice.choice(FIELDS)
        value = {"daily_limit_usd": dice.randrange(1, 999) / 100, "tools": [word(), word()], "skills": [word()]}.get(paths[0][-1], word())
        changes.append([dice.choice(TEXTS), paths, value if dice.random() < 0.8 else None])
    written = page.evaluate("""async (changes) => {
      const { withValue } = await import(new URL("pages/chat/agent-toml.js", document.querySelector("script[type=module]").src));
      return changes.map(([text, paths, value]) => withValue(text, paths, value));
    }""", changes)
    for (text, paths, value), after in zip(changes, written):
        before = tomllib.loads(text)
        now = tomllib.loads(after)
        assert next((found for found in (at(now, path) for path in paths) if found is not None), None) == (value or None), (text, paths, value, after)
        for path in paths:
            before, now = without(before, path), without(now, path)
        assert now == before, (text, paths, value, after)


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
