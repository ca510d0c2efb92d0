"""The page of a cluster in the browser. The daemon is a single one; what a node would say is answered in its place."""

import copy
import sys

from playwright.sync_api import expect

import access
import stage as stages

NODE = {"url": "http://10.0.0.1:4545", "version": "0.1.0", "draining": False, "epoch": 3, "index": 120, "lag": 0, "last_heard": "2026-01-01T00:00:00.000Z", "checked": None}
NODES = [
    {**NODE, "name": "a", "role": "owner"},
    {**NODE, "name": "b", "role": "standby", "index": 118, "lag": 2, "checked": {"at": "2026-01-01T00:00:00.000Z", "index": 100, "same": True}},
    {**NODE, "name": "<b>c</b>", "role": "silent", "version": None, "last_heard": None},
]
CLUSTER = {
    "enabled": True, "name": "main", "node": "a", "role": "owner", "owner": "a", "problems": [],
    "worlds": [{"world": 0, "owner": "a", "epoch": 3, "index": 120, "since": None, "problem": None}],
    "stream": {"name": "main-0", "first": 1, "last": 120, "bytes": 1000, "replicas": 3, "leader": "n1"},
    "servers": [{"name": "n1", "current": True, "offline": False, "lag": 0}, {"name": "n2", "current": False, "offline": True, "lag": 9}],
}


def cluster(stage):
    """Answers in the place of a node. Gives what it says, which may be changed, and what it was asked to do."""
    said = {"cluster": copy.deepcopy(CLUSTER), "nodes": copy.deepcopy(NODES)}
    done = []

    def give(route):
        path = route.request.url.split("/api/cluster", 1)[1].split("?")[0]
        if route.request.method == "GET":
            route.fulfill(json=said["cluster"] if path == "" else {"nodes": said["nodes"], "total": len(said["nodes"])})
            return
        done.append((path, route.request.post_data_json if route.request.post_data else None))
        if path.endswith("/move"):
            said["cluster"]["owner"] = said["cluster"]["worlds"][0]["owner"] = "b"
            said["nodes"][0]["role"], said["nodes"][1]["role"] = "standby", "owner"
            route.fulfill(json={"world": 0, "owner": "b", "epoch": 4, "paused_ms": 180})
        elif path.endswith("/drain"):
            said["nodes"][1]["draining"] = True
            route.fulfill(json={"node": "b", "moved": []})
        else:
            route.fulfill(json={"ok": False, "index": 120, "hash": "ab", "entries": 3, "problems": [], "nodes": [{"name": "b", "same": True}, {"name": "c", "same": None}]})

    stage.page.route("**/api/cluster**", give)
    return said, done


def case_nodes(stage):
    """The page shows nodes, roles, lag and what is wrong, and moves and drains with a confirmation."""
    said, done = cluster(stage)
    page = stage.open("#/cluster")
    expect(page.get_by_role("navigation").get_by_role("link", name="Cluster")).to_have_attribute("aria-current", "page")
    nodes = page.get_by_role("list", name="Nodes")
    expect(nodes.locator(".connection-card")).to_have_count(3)
    expect(nodes.locator(".connection-card").nth(1)).to_contain_text("2 entries")
    expect(nodes.locator(".connection-card").nth(2)).to_contain_text("<b>c</b>")
    expect(page.get_by_role("list", name="NATS servers")).to_contain_text("n2: offline")
    access.check(page, "a cluster")
    stage.shoot("cluster")
    said["cluster"]["problems"] = ["the disk of n2 is full"]
    expect(page.get_by_text("the disk of n2 is full")).to_be_visible()
    page.get_by_role("button", name="More for b", exact=True).click()
    page.get_by_role("menuitem", name="Make it the owner").click()
    page.get_by_role("dialog").get_by_role("button", name="Move").click()
    expect(page.locator(".toast").filter(has_text="b is the owner")).to_be_visible()
    expect(page.get_by_role("region", name="World")).to_contain_text("owned by b")
    page.get_by_role("button", name="More for b", exact=True).click()
    page.get_by_role("menuitem", name="Drain").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(nodes.locator(".connection-card").nth(1)).to_contain_text("drained")
    page.get_by_role("button", name="Compare nodes").click()
    expect(page.locator(".toast").filter(has_text="did not answer: c")).to_be_visible()
    assert done == [("/worlds/0/move", {"node": "b"}), ("/nodes/b/drain", None), ("/verify", None)], done


def case_single(stage):
    """A single daemon has no such page in the navigation."""
    stage.page.route("**/api/cluster", lambda route: route.fulfill(json={"enabled": False}))
    page = stage.open("#/settings/health")
    expect(page.get_by_role("heading", name="Health")).to_be_visible()
    expect(page.get_by_role("navigation").get_by_role("link", name="Cluster")).to_have_count(0)
    stage.open("#/cluster")
    expect(page.get_by_text("This daemon is not part of a cluster.")).to_be_visible()


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
