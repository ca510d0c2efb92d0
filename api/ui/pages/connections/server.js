// One MCP server: its state with what to do, its settings without secrets, its tools, its error output.

import { get } from "../../lib/api.js";
import { copyText } from "../../lib/code.js";
import { menuButton, showError, toast } from "../../lib/dialogs.js";
import { emptyState, fill, h, refill } from "../../lib/dom.js";
import { ago, count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { flagOf, reviewCard } from "./review.js";
import { pathOf } from "./server-form.js";
import { canSignIn, signInOf, signInText } from "./sign-in.js";
import { adviceFor, commandText, kindText, sentence, stateBadge } from "./words.js";

/** Tools that are shown before the rest is asked for. */
const PAGE = 50;
/** A server can have 1,000 tools with long descriptions: it is read when its health has changed, and after so many looks at that. */
const LOOKS = 15;

/** The view of the server `id`: `node`, `buttons()` for the head of the page, `read()`, and `forget()` when it was changed. */
export class ServerView {
  constructor({ id, signal, actions }) {
    Object.assign(this, { id, signal, actions });
    this.server = null;
    this.health = null;
    this.known = "";
    this.looks = 0;
    this.filter = "";
    this.shown = PAGE;
    this.title = h("h2", { tabindex: "-1" }, id);
    this.state = h("span", { class: "bar-row tight", role: "status" });
    this.tasks = h("div", { class: "buttons" });
    this.fault = h("div", { class: "fault-place" });
    this.review = h("div", { class: "fault-place" });
    this.facts = h("dl", { class: "pairs" });
    this.search = h("input", { type: "search", placeholder: "Filter tools", "aria-label": "Filter tools", oninput: () => { this.filter = this.search.value.toLowerCase(); this.shown = PAGE; this.showTools(); } });
    this.toolCount = h("p", { class: "dim", role: "status" });
    this.tools = h("ul", { class: "tool-list", "aria-label": "Tools" });
    this.moreTools = h("button", { type: "button", hidden: true, onclick: () => { this.shown += PAGE; this.showTools(); } }, "Show more");
    this.log = h("pre", { class: "code-box", tabindex: "0", role: "region", "aria-label": "Error output" });
    this.logCard = h("section", { class: "card stack", "aria-label": "Error output of the program" },
      h("div", { class: "bar-row" }, h("h3", { class: "grow" }, "Error output"), h("button", { type: "button", class: "small", onclick: () => this.readLog().catch(showError) }, icon("retry", 16), "Refresh")),
      h("p", { class: "hint" }, "The last 16 KiB that the program wrote to stderr. Known secrets are replaced with ***."), this.log);
    this.use = h("section", { class: "card stack", "aria-label": "Use by agents" });
    this.back = h("a", { class: "back-link", href: "#/connections" }, icon("chevron", 16), "All servers");
    this.toolCard = h("section", { class: "card stack", "aria-label": "Tools of the server" },
      h("div", { class: "bar-row" }, h("h3", {}, "Tools"), this.toolCount, h("div", { class: "search-field push" }, this.search)),
      h("p", { class: "hint" }, "Names and descriptions come from the server. Models read them as instructions: use servers that you trust."), this.tools, this.moreTools);
    this.body = h("div", { class: "stack" },
      h("div", { class: "bar-row server-head" }, h("div", { class: "bar-row tight grow" }, this.title, this.state), this.tasks),
      this.fault, this.review, h("section", { class: "card stack", "aria-label": "Settings" }, h("h3", {}, "Settings"), this.facts), this.toolCard, this.logCard, this.use);
    this.place = h("div", {});
    this.node = h("div", { class: "stack" }, this.back, this.place);
  }

  buttons() {
    return [];
  }

  focus() {
    this.title.focus({ preventScroll: true });
  }

  /** The next look reads all of it; one that is under way goes on with what it has. */
  forget() {
    this.known = null;
  }

  async read() {
    const { signal, id } = this;
    const { health } = await get("/api/mcp/health", { signal });
    this.health = health.find((item) => item.id === id) ?? null;
    if (this.health === null) return this.showMissing();
    const { status, tool_count: tools, tools_to_review: waiting, connected_since: since, last_error: error, reconnecting } = this.health;
    const known = JSON.stringify([status, tools, waiting, since, error, reconnecting]);
    this.looks += 1;
    if (this.server === null || known !== this.known || this.looks >= LOOKS) {
      this.server = await get(pathOf(id), { signal });
      this.known = known;
      this.looks = 0;
      this.showServer();
      if (this.isProgram) await this.readLog();
    }
    this.showHealth();
    if (this.body.parentNode !== this.place) fill(this.place, this.body);
  }

  get isProgram() {
    return this.server.transport?.type === "stdio" || Boolean(this.server.command);
  }

  showMissing() {
    fill(this.place, emptyState({ icon: icon("alert", 28), title: `There is no MCP server “${this.id}”`, text: "It was removed, or the address is wrong." }));
  }

  showServer() {
    const { server, actions } = this;
    this.title.textContent = server.name;
    const isOwn = server.source !== "config";
    if (can("admin")) refill(this.tasks,
      canSignIn(server) ? h("button", { type: "button", class: "primary", onclick: () => actions.signIn(server).catch(showError) }, icon("key", 18), "Sign in") : null,
      h("button", { type: "button", onclick: (event) => this.busy(event, () => actions.reconnect(server)) }, icon("retry", 18), "Reconnect"),
      isOwn ? h("button", { type: "button", onclick: () => actions.edit(server).catch(showError) }, icon("edit", 18), "Edit") : null,
      isOwn || server.auth?.state === "authorized" ? menuButton({ label: `More for ${server.name}`, items: () => [
        ...(server.auth?.state === "authorized" ? [{ label: "Sign out", icon: "out", run: () => actions.signOut(server) }] : []),
        ...(isOwn ? [{ label: "Remove", icon: "trash", danger: true, run: () => actions.remove(server) }] : []),
      ] }) : null);
    refill(this.review, reviewCard(server, can("admin") ? () => actions.accept(server).catch(showError) : null));
    this.showTools();
    this.logCard.hidden = !this.isProgram;
    const text = `mcp_servers = ["${server.name}"]\n\n[capabilities]\ntools = ["mcp_${plain(server.name)}_*"]`;
    refill(this.use, h("div", { class: "bar-row" }, h("h3", { class: "grow" }, "Let an agent use it"), h("button", { type: "button", class: "small", onclick: () => copyText(text).then(() => toast("Copied")).catch(showError) }, icon("copy", 16), "Copy")),
      h("p", { class: "hint" }, "Add this to the agent's manifest. No agent can use a server by default."), h("pre", { class: "code-box" }, text));
  }

  /** Runs `work` while its button shows that it goes on. */
  async busy(event, work) {
    const button = event.currentTarget;
    const spinner = h("span", { class: "spinner" });
    button.setAttribute("aria-busy", "true");
    button.prepend(spinner);
    try {
      await work();
    } catch (error) {
      showError(error);
    } finally {
      button.removeAttribute("aria-busy");
      spinner.remove();
    }
  }

  showHealth() {
    const { server, health } = this;
    refill(this.state, stateBadge(server, health), server.source === "config" ? h("span", { class: "badge" }, "from config.toml") : null, server.template_id ? h("span", { class: "badge" }, "from the catalog") : null);
    const reason = health.status === "connected" ? null : (server.error ?? health.last_error);
    const isStarting = health.status === "connecting";
    const told = reason && !isStarting ? `${reason} ${health.reconnecting} ${health.reconnect_attempts} ${server.auth?.state}` : "";
    if (this.fault.dataset.told !== told) {
      this.fault.dataset.told = told;
      // The output says why it ended: it stands beside the reason.
      (told === "" ? this.toolCard : this.fault).after(this.logCard);
      refill(this.fault, told === "" ? null : h("div", { class: `notice ${health.reconnecting || canSignIn(server) ? "warn" : "bad"}`, role: "alert" }, icon("alert"), h("div", { class: "notice-text" },
        h("strong", {}, health.reconnecting ? `Not connected. The daemon tries again (${count(health.reconnect_attempts, "attempt")} so far).` : "Not connected."),
        (canSignIn(server) ? [signInText(server.auth), sentence(server.auth.message)] : [sentence(reason), adviceFor(reason, this.isProgram)]).map((text) => (text ? h("p", {}, text) : null)))));
    }
    this.showFacts(this.pairs());
  }

  /** Writes what has changed only: somebody may be copying the rest. */
  showFacts(pairs) {
    const names = pairs.map(([name]) => name).join("\n");
    if (this.facts.dataset.names !== names) {
      this.facts.dataset.names = names;
      fill(this.facts, pairs.flatMap(([name, , style]) => [h("dt", {}, name), h("dd", { class: style ?? null })]));
    }
    const places = this.facts.querySelectorAll("dd");
    pairs.forEach(([, value], at) => { if (places[at].textContent !== value) places[at].textContent = value; });
  }

  pairs() {
    const { server, health } = this;
    const { transport } = server;
    const names = (list) => (list.length > 0 ? list.join(", ") : "none");
    const pairs = [["Transport", transport ? kindText(transport) : "Its catalog entry is missing."]];
    if (this.isProgram) pairs.push(["Command", commandText(transport ?? server), "mono"], ["Variables", names(server.env ?? []), "mono"], ["Network", server.network ? "allowed" : "not allowed"]);
    else if (transport) pairs.push(["Address", transport.url ?? transport.base_url, "mono"], ["Headers", names(server.headers ?? []), "mono"]);
    pairs.push(["Timeout", `${count(server.timeout_secs, "second")} per call`]);
    if (server.template_id) pairs.push(["Catalog entry", server.template_id, "mono"]);
    if (server.source === "config") pairs.push(["Defined in", "config.toml. Change it there."]);
    pairs.push(["Connected since", health.connected_since ? when(health.connected_since) : "not connected"], ["Last response", health.last_ok ? ago(health.last_ok) : "never"]);
    const auth = signInOf(server);
    if (auth) pairs.push(["Sign-in", [signInText(auth), auth.issuer ? `at ${auth.issuer}` : "", auth.scope ? `for ${auth.scope}` : "", auth.state === "error" ? auth.message : ""].filter(Boolean).join(" ")]);
    if (health.consecutive_failures > 0) pairs.push(["Failures", number(health.consecutive_failures)]);
    if (health.last_error && health.status === "connected") pairs.push(["Last error", `${sentence(health.last_error)} The server has recovered.`]);
    return pairs;
  }

  showTools() {
    const all = this.server?.tools ?? [];
    const rows = all.filter((tool) => `${tool.name} ${tool.description}`.toLowerCase().includes(this.filter));
    this.toolCount.textContent = this.filter === "" ? number(all.length) : `${number(rows.length)} of ${number(all.length)}`;
    this.search.parentNode.hidden = all.length < 8;
    this.moreTools.hidden = rows.length <= this.shown;
    // Text of the server: it stays text.
    refill(this.tools, rows.slice(0, this.shown).map((tool) => h("li", {}, h("code", {}, tool.name), tool.description ? h("p", { class: "server-text" }, tool.description) : null, flagOf(this.server.flagged_tools, tool.name))),
      rows.length === 0 ? h("li", { class: "dim" }, all.length === 0 ? "No tools. They appear when the server is connected." : "No matching tool.") : null);
  }

  async readLog() {
    const { log } = await get(`${pathOf(this.id)}/logs`, { signal: this.signal });
    const isAtEnd = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 8;
    this.log.textContent = log || "Nothing was written.";
    if (isAtEnd) this.log.scrollTop = this.log.scrollHeight;
  }
}

/** A server's name as it stands in the names of its tools. */
const plain = (name) => name.toLowerCase().replace(/[^a-z0-9_]/g, "_");
