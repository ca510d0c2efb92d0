// Changes of skills that agents propose: what each would change, and the decision.

import { call, get } from "../../lib/api.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { fill, h, refill } from "../../lib/dom.js";
import { ago, count } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { lineList } from "./words.js";

const ACTIONS = { create: "wants to create", update: "wants to rewrite", patch: "wants to change", rollback: "wants to take back a version of", delete: "wants to delete", write_file: "wants to write a file of", remove_file: "wants to remove a file of" };

/** A notice above the skills while changes wait; `changed()` is called after a decision. */
export class Pending {
  constructor({ signal, changed }) {
    Object.assign(this, { signal, changed });
    this.node = h("div", {});
  }

  async read() {
    const { candidates } = await get("/api/skills/pending", { signal: this.signal });
    if (candidates.length === 0) return void fill(this.node);
    refill(this.node, h("section", { class: "card stack review", "aria-label": "Proposed changes" },
      h("h2", {}, `${count(candidates.length, "proposed change")} of skills`),
      h("p", { class: "dim" }, "Agents proposed these. Nothing is in use before you approve it."),
      h("ul", { class: "tool-list" }, candidates.map((candidate) => h("li", {},
        h("div", { class: "bar-row tight" },
          h("p", { class: "grow" }, h("strong", {}, candidate.agent_name || "An agent that is gone"), ` ${ACTIONS[candidate.action] ?? candidate.action} `, h("code", {}, candidate.skill_name)),
          candidate.taint.length > 0 ? h("span", { class: "badge warn" }, `has read: ${candidate.taint.join(", ")}`) : null,
          h("button", { type: "button", class: "small", data: { key: `review ${candidate.id}` }, "aria-label": `Review the change of ${candidate.skill_name}`, onclick: () => this.review(candidate).catch(showError) }, "Review")),
        h("small", { class: "faint" }, [candidate.changelog, ago(candidate.created_at)].filter(Boolean).join(" · ")))))));
  }

  async review({ id }) {
    const path = `/api/skills/pending/${encodeURIComponent(id)}`;
    const { candidate } = await get(path, { signal: this.signal });
    const reject = h("button", { type: "button", class: "danger-text", onclick: () => this.reject(candidate, path).catch(showError) }, "Reject it");
    const mayDecide = can("admin");
    const done = await ask({
      title: `Change of ${candidate.skill_name}`, wide: true, action: mayDecide ? "Approve" : "Close", cancel: mayDecide ? "Cancel" : null,
      body: [
        h("p", {}, h("strong", {}, candidate.agent_name), ` ${ACTIONS[candidate.action] ?? candidate.action} this skill.`, candidate.changelog ? ` ${candidate.changelog}` : ""),
        candidate.taint.length > 0 ? h("p", { class: "notice warn" }, icon("alert", 18), h("span", {}, `Before it proposed this, it had read untrusted content: ${candidate.taint.join(", ")}.`)) : null,
        candidate.warnings.length > 0 ? lineList(candidate.warnings, { label: "Warnings", none: "", sign: "alert" }) : null,
        this.texts(candidate.change),
        mayDecide && h("div", { class: "buttons" }, reject),
      ],
      submit: () => mayDecide && call("POST", `${path}/approve`, {}),
    });
    if (!done) return;
    toast("Approved");
    await this.read();
    await this.changed();
  }

  /** The texts of a change, each under its name. */
  texts(change) {
    return Object.entries(change ?? {}).filter(([name, value]) => name !== "changelog" && value !== null && value !== "").map(([name, value]) => h("div", { class: "field" },
      h("span", { class: "label" }, name.replaceAll("_", " ")),
      h("pre", { class: "code-box", tabindex: "0", role: "region", "aria-label": name.replaceAll("_", " ") }, typeof value === "string" ? value : JSON.stringify(value, null, 2))));
  }

  async reject(candidate, path) {
    document.querySelector("dialog[open]")?.close();
    if (!(await confirm({ title: "Reject the change?", text: "The proposal is deleted. The skill stays as it is.", action: "Reject", run: () => call("POST", `${path}/reject`, {}) }))) return;
    toast("Rejected");
    await this.read();
  }
}
