"""The pictures of the documentation: a small office of agents, as the page shows it. `python tests/ui/documentation.py` writes them to the
folder of AGENTSVC_SCREENSHOTS; those in `docs/pictures` are renewed with AGENTSVC_SCREENSHOTS=docs/pictures, from the root of the tree.

Each must be small enough to be read on a slow line, so a picture that grows too large fails."""

import pathlib
import sys

from playwright.sync_api import expect

import stage as stages
from stage import config, last_text, offline

#: Bytes of a picture.
BYTES_MAX = 150_000
#: The window: wide enough for the page's columns, narrow enough for a page of documentation.
WINDOW = {"width": 1200, "height": 720}
#: Requests of a scripted model are short; its price makes up for that.
CONFIG = """[default_model]
provider = "openai"
model = "gpt-4.1"
base_url = "{model}"
api_key_env = "TEST_MODEL_KEY"
[prices."openai/gpt-4.1"]
input_per_m = 90.0
output_per_m = 10.0
[approval]
require_approval = ["file_write"]
"""
#: Who works there, and what for.
AGENTS = {
    "researcher": "Reads the news of the field and says what matters",
    "writer": "Drafts the weekly letter",
    "support-desk": "Sorts the tickets, answers the simple ones",
    "ops": "Watches the nightly imports",
    "bookkeeper": "Keeps the ledger",
}
#: What people asked.
QUESTIONS = [("ops", "Why did the import of Monday fail?"), ("researcher", "What is new about vector search?"), ("writer", "Draft the letter of this week"),
             ("bookkeeper", "Which invoices are open?"), ("support-desk", "Which tickets wait for an answer?")]
SUMMARY = """Three of five imports failed on Monday, all for the same reason: the export of the shop had **no header line**.

| Import | Rows | Result |
| --- | --: | --- |
| orders | 1,204 | failed: no header |
| customers | 318 | failed: no header |
| refunds | 27 | failed: no header |
| stock | 5,530 | done |
| prices | 911 | done |

I can repair the three files and start them again."""


def answers(messages, body):
    """A model that looks at the clock, explains the imports, and wants to write a file when it is told to repair them."""
    said = last_text(messages)
    if messages[-1]["role"] == "tool":
        return SUMMARY if "import" in str(messages[-3:]) else "Done."
    if "Repair" in said:
        return {"text": "I write the headers into the three files first.", "calls": [("file_write", {"path": "orders.csv", "content": "id,customer,sum\n"})]}
    if "import" in said:
        return {"calls": [("system_time", {})]}
    return "Here is what I found: two items matter today, and one can wait until next week."


def fill(stage):
    """Agents with schedules, a workflow, conversations and something that waits for a person; gives the agents' ids."""
    stage.model.respond = answers
    call = stage.daemon.call
    tools = '[capabilities]\ntools = ["*"]\n'
    ids = {name: stage.daemon.agent(name, f'description = "{about}"\nsystem_prompt = "{about}."\n{tools}') for name, about in AGENTS.items()}
    for name, cron, agent, prompt in [
        ("Morning digest", "0 8 * * MON-FRI", "researcher", "What is new since yesterday?"), ("Weekly letter", "0 16 * * FRI", "writer", "Draft the letter"),
        ("Ticket queue", "*/15 * * * *", "support-desk", "Answer the simple tickets"), ("Check the imports", "30 5 * * *", "ops", "Did the imports work?"),
        ("Month end", "0 7 1 * *", "bookkeeper", "Close the month")]:
        call("POST", "/api/schedules", {"name": name, "agent_id": ids[agent], "cron": cron, "prompt": prompt})
    for agent, question in QUESTIONS * 2:
        call("POST", f"/api/agents/{ids[agent]}/message", {"message": question})
    steps = [{"name": "collect", "agent_name": "researcher", "prompt": "Find sources on {{input}}", "output_var": "sources"},
             {"name": "draft", "agent_name": "writer", "prompt": "Write about {{input}}", "mode": "fan_out"},
             {"name": "figures", "agent_name": "bookkeeper", "mode": "fan_out"}, {"name": "join", "mode": "collect"},
             {"name": "publish", "agent_name": "ops", "prompt": "Publish it"}]
    made = call("POST", "/api/workflows", {"name": "Weekly letter", "description": "Collect, draft, publish", "steps": steps})
    call("POST", f"/api/workflows/{made['workflow_id']}/run", {"input": "tea"})
    return ids


def keep(stage, page, name):
    """A picture, once nothing moves any more."""
    page.evaluate("() => document.fonts.ready")
    stage.shoot(name, page)
    size = pathlib.Path(stage.shots, f"{name}.png").stat().st_size
    assert size <= BYTES_MAX, f"{name}.png has {size} bytes"


@offline
@config(CONFIG)
def case_pictures(stage):
    """The overview, a chat with an approval, an agent, its trace, and the schedules."""
    ids = fill(stage)
    # The page asks whether the file that is to be written is there.
    stage.expect_refusals(404)
    page = stage.page = stage.new_page(viewport=WINDOW)
    stage.open(f"#/chat/{ids['ops']}", page)
    box = page.get_by_label("Message", exact=True)
    box.fill("Repair the three files.")
    box.press("Enter")
    expect(page.get_by_role("region", name="Approval of file_write")).to_be_visible()
    keep(stage, page, "chat")
    stage.open("#/home", page)
    expect(page.get_by_role("region", name="Agents by cost", exact=True)).to_contain_text("researcher")
    expect(page.get_by_role("region", name="Needs you", exact=True)).to_contain_text("ops wants to write a file")
    keep(stage, page, "overview")
    stage.open(f"#/agent/{ids['ops']}", page)
    expect(page.get_by_role("region", name="Recent runs").get_by_role("link").nth(1)).to_be_visible()
    keep(stage, page, "agent")
    page.get_by_role("region", name="Recent runs").get_by_role("link").nth(3).click()
    expect(page.get_by_role("main").get_by_text("system_time").first).to_be_visible()
    keep(stage, page, "trace")
    stage.open("#/automation", page)
    page.locator(".axis-row").first.wait_for()
    keep(stage, page, "schedules")
    stage.open("#/automation/workflows", page)
    page.locator(".graph-step").first.wait_for()
    keep(stage, page, "workflow")


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
