// One plugin: what it is, whether it runs, how its hooks do, and their newest runs.

import { nameOf } from "../../lib/agents.js";
import { call, get } from "../../lib/api.js";
import { confirm, show as showDialog, showError, toast } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { bytes, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { lineList } from "./words.js";

const milliseconds = (value) => `${number(value)} ms`;

export class PluginView {
  constructor({ name, signal, gone }) {
    Object.assign(this, { name, signal, gone });
    this.node = h("div", { class: "stack" });
    this.path = `/api/plugins/${encodeURIComponent(name)}`;
  }

  async read() {
    const of = (what) => get(`${this.path}${what}`, { signal: this.signal });
    [this.plugin, this.status, this.health, this.traces] = await Promise.all([of(""), of("/status"), of("/health"), of("/traces")]);
    this.show();
  }

  focus() {
    this.node.querySelector("h2")?.focus({ preventScroll: true });
  }

  show() {
    const { plugin, status } = this;
    const pair = (name, value) => [h("dt", {}, name), h("dd", {}, value)];
    const button = (label, name, run) => can("admin") && h("button", { type: "button", data: { key: label }, onclick: () => run().catch(showError) }, icon(name, 18), label);
    const state = plugin.active ? "Its hooks run in conversations." : plugin.enabled ? "It is enabled, but [context_engine] of the configuration does not name it." : "It is disabled.";
    fill(this.node,
      h("a", { class: "back-link", href: "#/library/plugins" }, icon("chevron", 18), "All plugins"),
      h("section", { class: "card stack", "aria-label": plugin.name },
        h("div", { class: "bar-row" }, h("h2", { class: "grow", tabindex: "-1" }, plugin.name),
          plugin.enabled ? button("Disable", "pause", () => this.change("disable", "Disabled")) : button("Enable", "play", () => this.change("enable", "Enabled")),
          button("Reload", "retry", () => this.change("reload", "Read again")),
          can("admin") && h("button", { type: "button", class: "danger-text", onclick: () => this.remove().catch(showError) }, icon("trash", 18), "Remove")),
        h("p", {}, plugin.description),
        h("p", { class: "dim" }, state),
        status.runtime_available ? null : h("p", { class: "fault" }, `The runtime ${plugin.runtime} is not installed on the daemon's machine. Conversations go on without this plugin.`),
        h("dl", { class: "pairs" },
          pair("Version", plugin.version), pair("Author", plugin.author || "–"), pair("Runtime", plugin.runtime), pair("Source", plugin.source || "Put there by hand"),
          pair("Installed", plugin.installed_at ? when(plugin.installed_at) : "–"), pair("Signed", plugin.signed ? "Yes" : "No"), pair("Network", plugin.network ? "Allowed" : plugin.wants_network ? "Not allowed, though the plugin asks for it" : "Not used"), pair("Size", bytes(plugin.size_bytes)))),
      plugin.warnings.length > 0 ? h("section", { class: "card stack", "aria-label": "Warnings" }, h("h2", {}, "Warnings"), lineList(plugin.warnings, { label: "Warnings", none: "", sign: "alert" })) : null,
      this.hooks(),
      this.runs());
  }

  hooks() {
    const row = ([name, of]) => h("tr", {}, h("th", { scope: "row" }, name, of.circuit_open ? h("span", { class: "badge bad" }, "paused after failures") : null),
      h("td", { class: "num" }, number(of.calls)), h("td", { class: "num" }, number(of.errors)), h("td", { class: "num" }, milliseconds(of.avg_elapsed_ms)), h("td", {}, of.last_error ?? ""),
      can("admin") && h("td", {}, h("button", { type: "button", class: "small", "aria-label": `Test ${name}`, onclick: () => this.test(name).catch(showError) }, "Test")));
    return h("section", { class: "card stack", "aria-label": "Hooks" }, h("h2", {}, "Hooks"),
      h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Health of hooks" },
        h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Hook"), ["Calls", "Errors", "Average"].map((name) => h("th", { scope: "col", class: "num" }, name)), h("th", { scope: "col" }, "Last error"), can("admin") && h("th", { scope: "col" }, "Test"))),
          h("tbody", {}, Object.entries(this.health.hooks).map(row)))));
  }

  runs() {
    const { traces } = this.traces;
    const row = (run) => h("tr", {}, h("td", {}, when(run.at)), h("td", {}, run.hook), h("td", {}, nameOf(run.agent_id)), h("td", { class: "num" }, run.cached ? "cached" : milliseconds(run.elapsed_ms)),
      h("td", {}, run.error ? h("span", { class: "fault" }, run.error) : "Good"));
    return h("section", { class: "card stack", "aria-label": "Runs" }, h("h2", {}, "Newest runs"),
      traces.length === 0 ? h("p", { class: "dim" }, "No hook has run since the plugin was loaded.")
        : h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Runs of hooks" },
          h("table", {}, h("thead", {}, h("tr", {}, ["When", "Hook", "Agent"].map((name) => h("th", { scope: "col" }, name)), h("th", { scope: "col", class: "num" }, "Time"), h("th", { scope: "col" }, "Result"))), h("tbody", {}, traces.map(row)))));
  }

  async change(verb, word) {
    await call("POST", `${this.path}/${verb}`);
    toast(word);
    await this.read();
  }

  /** Runs a hook with an example, and shows what it gave. */
  async test(hook) {
    const told = await call("POST", `${this.path}/test-hook`, { hook });
    await this.read();
    await showDialog({
      title: told.ok ? `${hook} took ${milliseconds(told.elapsed_ms)}` : `${hook} failed`,
      body: [told.ok ? h("pre", { class: "code-box tall", tabindex: "0", role: "region", "aria-label": "Answer" }, JSON.stringify(told.output, null, 2)) : h("p", { class: "fault" }, told.error)],
    });
  }

  async remove() {
    const text = "Its folder and its data are deleted.";
    if (!(await confirm({ title: `Remove ${this.name}?`, text, action: "Remove", run: () => call("POST", "/api/plugins/uninstall", { name: this.name }) }))) return;
    toast("Removed");
    this.gone();
  }
}
