// One skill: what it says, what it needs and may do, its files, its tools and its versions.

import { call, get, withQuery } from "../../lib/api.js";
import { confirm, show as showDialog, showError, toast } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { count, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { lineList, permissionLines, runtimeText, warningList } from "./words.js";

export class SkillView {
  constructor({ name, signal, gone }) {
    Object.assign(this, { name, signal, gone });
    this.node = h("div", { class: "stack" });
    this.path = `/api/skills/${encodeURIComponent(name)}`;
  }

  async read() {
    this.skill = await get(this.path, { signal: this.signal });
    this.show();
  }

  focus() {
    this.node.querySelector("h2")?.focus({ preventScroll: true });
  }

  show() {
    const { skill } = this;
    const pair = (name, value) => [h("dt", {}, name), h("dd", {}, value)];
    const text = skill.prompt_context ?? "";
    const source = skill.source_detail ?? {};
    fill(this.node,
      h("a", { class: "back-link", href: "#/library" }, icon("chevron", 18), "All skills"),
      h("section", { class: "card stack", "aria-label": skill.name },
        h("div", { class: "bar-row" }, h("h2", { class: "grow", tabindex: "-1" }, skill.name),
          skill.source === "Bundled" || !can("admin") ? null : h("button", { type: "button", class: "danger-text", onclick: () => this.remove().catch(showError) }, icon("trash", 18), "Remove")),
        h("p", {}, skill.description),
        h("dl", { class: "pairs" },
          pair("Version", skill.version || "–"), pair("Author", skill.author || "–"), skill.license ? pair("License", skill.license) : null,
          pair("Runs as", runtimeText(skill.runtime)), pair("Source", [skill.source, source.slug ? ` (${source.slug})` : ""]),
          pair("Tags", skill.tags?.length > 0 ? h("span", { class: "chips" }, skill.tags.map((tag) => h("span", { class: "badge" }, tag))) : "None"),
          pair("Used", count(skill.evolution?.use_count ?? 0, "time")))),
      h("section", { class: "card stack", "aria-label": "Permissions" }, h("h2", {}, "What it may do"),
        lineList(permissionLines(skill), { label: "Permissions", none: "Nothing beyond its text." })),
      this.needs(),
      skill.tools?.length > 0 ? h("section", { class: "card stack", "aria-label": "Tools" }, h("h2", {}, "Tools"),
        h("ul", { class: "tool-list" }, skill.tools.map((tool) => h("li", {}, h("code", {}, tool.name), h("p", { class: "server-text" }, tool.description))))) : null,
      h("section", { class: "card stack", "aria-label": "Instructions" }, h("h2", {}, "Instructions"),
        text ? h("div", { class: "code-box tall setup", tabindex: "0", role: "region", "aria-label": "Instructions" }, text) : h("p", { class: "dim" }, "It has none.")),
      this.files(),
      this.versions());
  }

  needs() {
    const { skill } = this;
    const unmet = skill.unmet ?? [];
    const warnings = warningList(skill.warnings);
    if (unmet.length === 0 && warnings.length === 0) return null;
    return h("section", { class: "card stack", "aria-label": "Needs" },
      unmet.length > 0 ? [h("h2", {}, "Missing requirements"), h("p", { class: "dim" }, "Agents do not see this skill until its needs are met."), lineList(unmet, { label: "Unmet needs", none: "", sign: "alert" })] : null,
      warnings.length > 0 ? [h("h2", {}, "Warnings"), lineList(warnings, { label: "Warnings", none: "", sign: "alert" })] : null);
  }

  files() {
    const all = Object.entries(this.skill.linked_files ?? {}).flatMap(([, paths]) => paths);
    if (all.length === 0) return null;
    return h("section", { class: "card stack", "aria-label": "Files" }, h("h2", {}, "Files"),
      h("ul", { class: "chips" }, all.map((path) => h("li", {}, h("button", { type: "button", onclick: () => this.open(path).catch(showError) }, path)))));
  }

  /** Shows the text of a file. */
  async open(path) {
    const file = await get(withQuery(`${this.path}/file`, { path }), { signal: this.signal });
    await showDialog({ title: path, body: [h("pre", { class: "code-box tall", tabindex: "0", role: "region", "aria-label": path }, file.content), file.truncated ? h("p", { class: "hint" }, "The file is longer than what is shown.") : null] });
  }

  versions() {
    const versions = [...(this.skill.evolution?.versions ?? [])].reverse();
    if (versions.length === 0) return null;
    return h("section", { class: "card stack", "aria-label": "Versions" }, h("h2", {}, "Versions"),
      h("ol", { class: "entry-versions", "aria-label": "Versions, newest first" }, versions.map((version, index) => h("li", {},
        h("div", { class: "bar-row" }, h("p", { class: "grow" }, h("strong", {}, version.version), version.changelog ? ` ${version.changelog}` : ""),
          index === 0 ? h("span", { class: "badge good" }, "in use") : can("admin") && h("button", { type: "button", class: "small", data: { key: `version ${version.version}` }, onclick: () => this.rollback(version).catch(showError) }, "Use this version")),
        h("small", { class: "faint" }, when(version.timestamp))))));
  }

  async rollback(version) {
    const text = `${this.name} goes back to version ${version.version}. The present version stays in the list.`;
    if (!(await confirm({ title: "Use the earlier version?", text, action: "Use it", danger: false, run: () => call("POST", `${this.path}/evolve/rollback`, { version: version.version }) }))) return;
    toast("Version changed");
    await this.read();
  }

  async remove() {
    const text = "Its folder is deleted. Agents that list it go on without it.";
    if (!(await confirm({ title: `Remove ${this.name}?`, text, action: "Remove", run: () => call("POST", "/api/skills/uninstall", { name: this.name }) }))) return;
    toast("Removed");
    this.gone();
  }
}
