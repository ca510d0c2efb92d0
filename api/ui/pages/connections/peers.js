// Peers: this node, and the nodes whose agents can be messaged, with the fingerprints of their keys.

import { call, get } from "../../lib/api.js";
import { copyText } from "../../lib/code.js";
import { confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { fill, h, refill } from "../../lib/dom.js";
import { ago, count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { turnOn } from "../../lib/off.js";
import { poll } from "../../lib/poll.js";
import { sentence } from "./words.js";

const EVERY_MS = 5000;
/** Agents of a peer that are named. */
const AGENTS_SHOWN = 8;

/** What config.toml needs to connect nodes. */
const LINES = "network_enabled = true\n\n[network]\nlisten_addresses = [\"0.0.0.0:7400\"]\nbootstrap_peers = [\"10.0.0.2:7400\"]\nshared_secret = \"…\"";

/** A fingerprint in groups that two people can compare. */
const groups = (text) => (text ? text.replace(/(.{4})(?=.)/g, "$1 ") : "none");

export async function mount(root, ctx) {
  const { signal } = ctx;
  const own = h("section", { class: "card stack", "aria-label": "This node" });
  const list = h("ul", { class: "connection-cards peer-cards", "aria-label": "Peers" });
  const counts = h("span", { class: "dim" });
  const body = h("div", { class: "stack" }, own, h("div", { class: "bar-row" }, h("h2", {}, "Known peers"), counts), list);
  let shown = "";

  async function read() {
    const [status, { peers }] = await Promise.all([get("/api/network/status", { signal }), get("/api/peers", { signal })]);
    // What was pinned in an earlier run is a peer that is not connected.
    const pinned = new Map((status.pinned_peers ?? []).map((pin) => [pin.node_id, pin]));
    const known = new Set(peers.map((peer) => peer.node_id));
    const all = [...peers, ...[...pinned.values()].filter((pin) => !known.has(pin.node_id)).map((pin) => ({ ...pin, state: "disconnected", agents: [], last_seen: pin.last_verified }))];
    const text = JSON.stringify([status, all]);
    // An open menu stays; what is new is shown when it is closed.
    if (text === shown || list.querySelector(":popover-open")) return;
    shown = text;
    showOwn(status);
    counts.textContent = all.length > 0 ? `${number(status.connected_peers)} of ${number(all.length)} connected` : "";
    refill(list, all.map((peer) => card(peer, pinned.get(peer.node_id))), all.length === 0 ? h("li", { class: "dim" }, status.online ? "No peers are known yet." : "Peers appear here when the network is on.") : null);
    if (body.parentNode !== root) fill(root, body);
  }

  function showOwn(status) {
    const [style, word] = status.online ? ["good", "online"] : status.enabled ? ["bad", "not online"] : ["", "off"];
    const { throughput = {} } = status;
    refill(own,
      h("div", { class: "bar-row" }, h("h2", {}, "This node"), h("span", { class: `badge ${style}` }, word)),
      status.problem ? h("div", { class: "notice bad", role: "alert" }, icon("alert"), h("span", {}, sentence(status.problem))) : null,
      status.online ? [
        h("dl", { class: "pairs" },
          h("dt", {}, "Name"), h("dd", {}, status.node_name),
          h("dt", {}, "Node id"), h("dd", { class: "mono" }, status.node_id),
          h("dt", {}, "Fingerprint"), h("dd", { class: "bar-row tight" }, h("code", {}, groups(status.identity_fingerprint)), h("button", { type: "button", class: "small", onclick: () => copyText(status.identity_fingerprint).then(() => toast("Copied")).catch(showError) }, icon("copy", 16), "Copy")),
          h("dt", {}, "Listens on"), h("dd", { class: "mono" }, (status.listen_addrs ?? []).join(", ") || "nothing"),
          h("dt", {}, "Messages"), h("dd", {}, `${number(throughput.messages_sent)} sent, ${number(throughput.messages_received)} received, ${number(throughput.requests_limited)} over a limit`)),
        h("p", { class: "hint" }, "Compare this fingerprint with the one that your peers show for this node. Connections are not encrypted: use a private network, a VPN or a tunnel."),
      ] : status.enabled ? null : [
        h("p", {}, "The network is off: no other node reaches the agents of this one."),
        h("p", {}, "To connect nodes, give all of them the same secret. ", h("code", {}, "openssl rand -hex 32"), " makes one."),
        turnOn({ key: "network_enabled", lines: LINES }),
      ]);
  }

  // Names and agents are what the other node says: they stay text.
  function card(peer, pin) {
    const isUp = peer.state === "connected";
    const names = (peer.agents ?? []).slice(0, AGENTS_SHOWN).map((agent) => agent.name);
    const rest = (peer.agents ?? []).length - names.length;
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, icon("link", 20), h("h3", { class: "grow cut" }, peer.node_name || peer.node_id), h("span", { class: `badge ${isUp ? "good" : "bad"}` }, peer.state),
        pin && can("admin") ? menuButton({ label: `More for ${peer.node_name || peer.node_id}`, key: `more ${peer.node_id}`, class: "quiet small only-icon", items: () => [{ label: "Forget its key", icon: "trash", danger: true, run: () => forget(peer) }] }) : null),
      h("dl", { class: "pairs" },
        h("dt", {}, "Address"), h("dd", { class: "mono" }, peer.address),
        h("dt", {}, "Node id"), h("dd", { class: "mono" }, peer.node_id),
        h("dt", {}, "Fingerprint"), h("dd", { class: "mono" }, pin?.fingerprint ? groups(pin.fingerprint) : "no key is pinned"),
        h("dt", {}, "Agents"), h("dd", {}, names.length > 0 ? `${names.join(", ")}${rest > 0 ? ` and ${count(rest, "other")}` : ""}` : "none known"),
        h("dt", {}, "Last seen"), h("dd", {}, h("time", { datetime: peer.last_seen, title: when(peer.last_seen) }, ago(peer.last_seen)))));
  }

  async function forget(peer) {
    const name = peer.node_name || peer.node_id;
    const text = `The next key that ${name} shows is trusted. Do this only if its identity has changed, and compare the fingerprints afterwards.`;
    if (!(await confirm({ title: `Forget the key of ${name}?`, text, action: "Forget", run: () => call("DELETE", `/api/network/trusted/${encodeURIComponent(peer.node_id)}`) }))) return;
    toast("Forgotten");
    shown = "";
    await again();
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
}
