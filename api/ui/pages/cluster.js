// The cluster: its nodes and how far they are, which one owns the world, and what moves it.

import { call, get } from "../lib/api.js";
import { confirm, menuButton, showError, toast } from "../lib/dialogs.js";
import { fill, h, refill, useStyles } from "../lib/dom.js";
import { ago, count, duration, number, when } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { can } from "../lib/me.js";
import { poll } from "../lib/poll.js";

export const title = "Cluster";

const EVERY_MS = 2000;

/** How a role looks. */
const STYLES = { owner: "good", standby: "accent", moving: "warn", joining: "warn", silent: "bad" };

const path = (...parts) => `/api/cluster/${parts.map(encodeURIComponent).join("/")}`;

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/connections.css", import.meta.url))]);
  const { signal } = ctx;
  const world = h("section", { class: "card stack", "aria-label": "World" });
  const nodes = h("ul", { class: "connection-cards", "aria-label": "Nodes" });
  const journal = h("section", { class: "card stack", "aria-label": "Journal" });
  const trouble = h("div", { class: "stack tight-stack", role: "status" });
  const note = h("p", { class: "tab-note", role: "status" });
  const check = h("button", { type: "button", onclick: () => verify().catch(showError) }, icon("check", 16), "Compare nodes");
  const body = h("div", { class: "stack" }, trouble, world, h("h2", {}, "Nodes"), nodes, journal);
  fill(root, h("div", { class: "scroll" }, h("div", { class: "page-body" },
    h("header", { class: "page-head" }, h("div", { class: "grow" }, h("h1", {}, title), h("p", { class: "tab-text" }, "Nodes that keep one world. If the owner fails, a standby takes over."), note), can("admin") ? h("div", { class: "buttons" }, check) : null), body)));

  async function read() {
    const cluster = await get("/api/cluster", { signal });
    if (!cluster.enabled) {
      fill(root, h("div", { class: "page-body" }, h("h1", {}, title), h("p", {}, "This daemon is not part of a cluster.")));
      return;
    }
    const list = (await get("/api/cluster/nodes", { signal })).nodes;
    refill(trouble, cluster.problems.map((text) => h("p", { class: "notice warn" }, icon("alert"), h("span", {}, text))));
    showWorld(cluster);
    // An open menu stays; what is new is shown when it is closed.
    if (!nodes.querySelector(":popover-open")) refill(nodes, list.map((node) => card(node, list)));
    showJournal(cluster);
  }

  function showWorld(cluster) {
    const [{ owner, epoch, index, since, problem } = {}] = cluster.worlds;
    refill(world,
      h("div", { class: "bar-row" }, h("h2", {}, cluster.name), h("span", { class: `badge ${owner ? "good" : "bad"}` }, owner ? `owned by ${owner}` : "no owner")),
      problem ? h("p", { class: "notice bad", role: "alert" }, icon("alert"), h("span", {}, problem)) : null,
      h("dl", { class: "pairs" },
        h("dt", {}, "Answered by"), h("dd", {}, `${cluster.node} (${cluster.role})`),
        h("dt", {}, "Epoch"), h("dd", {}, number(epoch)),
        h("dt", {}, "Last entry"), h("dd", {}, number(index)),
        since ? [h("dt", {}, "Owned since"), h("dd", {}, when(since))] : null));
  }

  function showJournal({ stream, servers }) {
    refill(journal,
      h("h2", {}, "Journal"),
      stream === null ? h("p", { class: "notice bad", role: "alert" }, icon("alert"), h("span", {}, "The NATS servers do not answer.")) : h("dl", { class: "pairs" },
        h("dt", {}, "Stream"), h("dd", { class: "mono" }, stream.name),
        h("dt", {}, "Entries"), h("dd", {}, `${number(stream.first)} to ${number(stream.last)}, ${count(stream.replicas, "copy", "copies")}`),
        h("dt", {}, "Leader"), h("dd", {}, stream.leader ?? "is being elected")),
      servers.length === 0 ? null : h("ul", { class: "chips", "aria-label": "NATS servers" }, servers.map((server) => h("li", { class: `badge ${server.offline ? "bad" : server.current ? "good" : "warn"}` }, `${server.name}: ${server.offline ? "offline" : server.current ? "current" : `${number(server.lag)} behind`}`))));
  }

  // Names are what other nodes say: they stay text.
  function card(node, all) {
    const owner = all.find(({ role }) => role === "owner");
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, icon("database", 20), h("h3", { class: "grow cut" }, node.name), node.draining ? h("span", { class: "badge warn" }, "drained") : null, h("span", { class: `badge ${STYLES[node.role] ?? ""}` }, node.role),
        can("admin") ? menuButton({ label: `More for ${node.name}`, key: `more ${node.name}`, class: "quiet small only-icon", items: () => [
          ...(node.role === "standby" && !node.draining && owner ? [{ label: "Make it the owner", icon: "play", run: () => move(node) }] : []),
          { label: "Drain", icon: "pause", run: () => drain(node) },
        ] }) : null),
      h("dl", { class: "pairs" },
        h("dt", {}, "Address"), h("dd", { class: "mono" }, node.url),
        h("dt", {}, "Behind"), h("dd", {}, node.role === "silent" ? "unknown" : node.lag === 0 ? "nothing" : count(node.lag, "entry", "entries")),
        h("dt", {}, "Epoch"), h("dd", {}, number(node.epoch)),
        node.version ? [h("dt", {}, "Version"), h("dd", {}, node.version)] : null,
        h("dt", {}, "Last heard"), h("dd", {}, node.last_heard ? h("time", { datetime: node.last_heard, title: when(node.last_heard) }, ago(node.last_heard)) : "never"),
        node.checked ? [h("dt", {}, "Compared"), h("dd", {}, `${node.checked.same ? "same" : "different"}, ${ago(node.checked.at)}`)] : null));
  }

  async function move({ name }) {
    const run = async () => {
      const { paused_ms: paused } = await call("POST", path("worlds", "0", "move"), { node: name });
      toast(`${name} is the owner; the pause was ${duration(paused)}.`);
    };
    if (await confirm({ title: `Make ${name} the owner?`, text: "What the owner has taken in is stored first. Requests wait or are asked to come again for less than a second, and open streams end.", action: "Move", danger: false, run })) await again();
  }

  async function drain({ name }) {
    const run = async () => {
      const { moved } = await call("POST", path("nodes", name, "drain"));
      toast(moved.length > 0 ? `${name} is drained; ${moved[0].owner} is the owner.` : `${name} is drained.`);
    };
    if (await confirm({ title: `Drain ${name}?`, text: "If it is the owner, another node takes over. It takes nothing over until it restarts.", action: "Drain", run })) await again();
  }

  async function verify() {
    check.disabled = true;
    try {
      const { ok, problems, nodes: compared } = await call("POST", path("verify"));
      const different = compared.filter(({ same }) => same === false).map(({ name }) => name);
      const silent = compared.filter(({ same }) => same === null).map(({ name }) => name);
      const said = [...problems, different.length > 0 ? `different from the owner: ${different.join(", ")}` : "", silent.length > 0 ? `did not answer: ${silent.join(", ")}` : ""].filter(Boolean);
      toast(ok ? "All nodes have the same records." : said.join("; "), { kind: ok ? "good" : "bad" });
      await again();
    } finally {
      check.disabled = false;
    }
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true, onFault: (error) => {
    note.textContent = error ? "Not updated: no node answers." : "";
  } });
}
