"""The pages with very many agents and a flood of events: no task of the page may take longer than 200 ms.

What counts is a trace of the browser: how long each task of the page's thread worked, by the thread's own clock. The time that passed
meanwhile (`PerformanceObserver`, `longtask`) is printed beside it; where other programs use the machine it is longer.

AGENTSVC_UI_AGENTS (2000) and AGENTSVC_UI_SECONDS (6) say how much; 100000 and 20 are the numbers of the goal."""

import collections
import json
import os
import sys
import threading
import time

import stage as stages
from playwright.sync_api import expect

AGENTS = int(os.environ.get("AGENTSVC_UI_AGENTS", "2000"))
SECONDS = float(os.environ.get("AGENTSVC_UI_SECONDS", "6"))
EVENTS_PER_SECOND = 1000
LANES = 20
LONGEST_MS = 200

# Long tasks are noted from the first moment of the page on; frames show what is between them.
WATCH = """
window.longTasks = [];
new PerformanceObserver((list) => { for (const one of list.getEntries()) window.longTasks.push({ at: Math.round(one.startTime), ms: Math.round(one.duration) }); }).observe({ type: "longtask", buffered: true });
window.slowestFrame = 0;
let before = performance.now();
const frame = (now) => { window.slowestFrame = Math.max(window.slowestFrame, now - before); before = now; requestAnimationFrame(frame); };
requestAnimationFrame(frame);
"""


def many_agents(stage):
    """Agents by the bulk route, 5,000 at a time."""
    for first in range(0, AGENTS, 5000):
        agents = [{"manifest_toml": f'name = "agent-{at}"\n'} for at in range(first, min(first + 5000, AGENTS))]
        assert stage.daemon.call("POST", "/api/agents/bulk", {"agents": agents})["failed"] == 0


class Flood(threading.Thread):
    """Custom events, as near to 1,000 a second as the machine gets, over a few connections."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.daemon_url = daemon.url
        self.stopped = threading.Event()
        self.sent = 0

    def run(self):
        import http.client

        host = self.daemon_url.removeprefix("http://")
        body = b'{"event_type":"flood.tick","payload":{"text":"something happened somewhere"}}'

        def lane():
            connection = http.client.HTTPConnection(host, timeout=stages.PATIENCE_S)
            while not self.stopped.is_set():
                began = time.monotonic()
                for _ in range(EVENTS_PER_SECOND // LANES // 10):
                    connection.request("POST", "/api/events", body, {"content-type": "application/json"})
                    connection.getresponse().read()
                    self.sent += 1
                left = 0.1 - (time.monotonic() - began)
                if left > 0:
                    self.stopped.wait(left)

        lanes = [threading.Thread(target=lane, daemon=True) for _ in range(LANES)]
        for one in lanes:
            one.start()
        for one in lanes:
            one.join()


def longest_of(trace):
    """The longest tasks of the thread that draws the page, in ms: by its own clock, and by the wall's."""
    events = json.loads(trace)["traceEvents"]
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one.get("name") == "thread_name"}
    tasks = [one for one in events if one.get("ph") == "X" and one["name"].endswith("RunTask") and names.get((one["pid"], one["tid"])) == "CrRendererMain"]
    assert len(tasks) > 100, f"the trace has {len(tasks)} tasks, of {collections.Counter(one.get('name') for one in events).most_common(9)}"
    assert all("tdur" in one for one in tasks[:100]), "the trace has no times of the thread"
    # The shortest ones have no time of the thread.
    return max(one.get("tdur", one["dur"]) for one in tasks) / 1000, max(one["dur"] for one in tasks) / 1000


def case_flood(stage):
    """Every page stays at hand: with all these agents, while events flood in."""
    many_agents(stage)
    paths = stage.daemon.call("GET", "/api/openapi.json")["paths"]
    page = stage.new_page()
    page.add_init_script(WATCH)
    flood = Flood(stage.daemon)
    flood.start()
    began = time.monotonic()
    parts = ["#/chat", "#/automation", "#/automation/triggers", "#/automation/tasks", "#/money", "#/money/audit", "#/settings/models", "#/settings/config"]
    if "/api/world" in paths:
        parts += ["#/world", "#/world/query?q=agents%20limit%2010000"]
    longest = {}
    # The page is loaded once: what it does is in one trace.
    stage.browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline", "devtools.timeline"])
    stage.open("#/chat", page)
    for hash in parts:
        page.evaluate("(hash) => { window.longTasks.length = 0; window.slowestFrame = 0; location.hash = hash; }", hash)
        page.wait_for_timeout(1500)
        longest[hash] = (page.evaluate("Math.max(0, ...window.longTasks.map((one) => one.ms))"), round(page.evaluate("window.slowestFrame")))
    if "/api/world/events" in paths:
        page.evaluate("() => { window.longTasks.length = 0; window.slowestFrame = 0; location.hash = '#/world/events'; }")
        expect(page.get_by_role("table", name="Events, the newest first")).to_contain_text("flood.tick")
        before = page.locator(".event-filters .num").inner_text()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            page.mouse.move(640, 600)
            page.mouse.wheel(0, 400)
            page.wait_for_timeout(250)
        page.get_by_label("Only with this text").fill("flood")
        page.wait_for_timeout(500)
        after = page.locator(".event-filters .num").inner_text()
        assert before != after, f"the stream stands still: {after}"
        longest["#/world/events"] = (page.evaluate("Math.max(0, ...window.longTasks.map((one) => one.ms))"), round(page.evaluate("window.slowestFrame")))
        print(f"events seen: {after}")
    worked, passed = longest_of(stage.browser.stop_tracing())
    flood.stopped.set()
    seconds = time.monotonic() - began
    print(f"{AGENTS} agents, {flood.sent / seconds:.0f} events a second: the longest task worked {worked:.0f} ms, in {passed:.0f} ms")
    print(f"longest task and slowest frame by the wall's clock, in ms: {longest}")
    assert worked <= LONGEST_MS, f"a task of {worked:.0f} ms"


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
