// Versions of an agent's system prompt, and experiments that compare them. The address names the agent.

import { agentField, learnAll, nameOf } from "../../lib/agents.js";
import { call, get, page } from "../../lib/api.js";
import { codeBlock } from "../../lib/code.js";
import { choice, textBox, textInput, toggle } from "../../lib/controls.js";
import { ask, confirm, menuButton, show as showDialog, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill } from "../../lib/dom.js";
import { ago, count, duration, money, number } from "../../lib/format.js";
import { examples } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { can, seesAll } from "../../lib/me.js";

const EVERY_MS = 10_000;
/** As many as an agent can have. */
const ALL = 100;
/** Agents that are offered to begin with. */
const OFFERED = 12;
const BADGES = { draft: "", running: "good", paused: "warn", completed: "accent" };
const VERDICTS = { better: ["good", "better"], worse: ["bad", "worse"], no_difference: ["", "no clear difference"], not_enough_data: ["warn", "too few turns"] };

const percent = (share) => (share === null ? "–" : `${number(Math.round(share * 1000) / 10)} %`);
const title = (version) => `Version ${version.version}`;
const firstLine = (text) => text.trim().split("\n", 1)[0].slice(0, 160);

export async function mount(root, ctx) {
  const { signal } = ctx;
  let agent = null;
  let versions = [];
  const picker = agentField("Agent");
  const form = h("form", { class: "bar-row pick-row", novalidate: true, onsubmit: (event) => { event.preventDefault(); pick().catch(showError); } }, picker, h("button", { type: "submit" }, "Show"));
  const versionList = h("ul", { class: "connection-cards", "aria-label": "Versions" });
  const experimentList = h("ul", { class: "connection-cards", "aria-label": "Experiments" });
  const body = h("div", { class: "stack" });
  fill(root, h("div", { class: "stack" }, form, body));

  async function pick() {
    const id = await picker.read().catch(() => null);
    if (id) ctx.go(["library", "prompts", id]);
  }

  async function read() {
    const of = agent;
    const path = `/api/agents/${encodeURIComponent(of)}/prompts`;
    const [found, made] = await Promise.all([page(`${path}/versions`, "versions", { limit: ALL }, { signal }), page(`${path}/experiments`, "experiments", { limit: ALL }, { signal })]);
    const figures = await Promise.all(made.items.map((experiment) => (experiment.status === "draft" ? null : get(`/api/prompts/experiments/${experiment.id}/metrics`, { signal }))));
    if (of !== agent) return;
    versions = found.items.reverse();
    refill(versionList, versions.length === 0 ? h("li", { class: "dim" }, "No versions yet. Save the prompt that the agent has as the first one.") : versions.map(versionCard));
    refill(experimentList, made.items.length === 0 ? h("li", { class: "dim" }, "No experiments yet. Compare two or more versions on real conversations.") : made.items.map((experiment, at) => experimentCard(experiment, figures[at])).reverse());
    if (versionList.isConnected) return;
    fill(body,
      h("section", { class: "stack", "aria-labelledby": "prompt-versions" }, h("h2", { id: "prompt-versions" }, "Versions"), versionList),
      h("section", { class: "stack", "aria-labelledby": "prompt-experiments" }, h("h2", { id: "prompt-experiments" }, "Experiments"), experimentList));
  }

  const again = () => read().catch(showError);

  function versionCard(version) {
    return h("li", { class: "card connection-card", data: { key: `${version.id} ${version.is_active}` } },
      h("div", { class: "bar-row tight" }, h("h3", { class: "grow cut" }, title(version)), version.is_active ? h("span", { class: "badge good" }, "active") : null,
        menuButton({ label: `More for ${title(version).toLowerCase()}`, class: "quiet small only-icon", items: () => [
          { label: "Show the prompt", icon: "file", run: () => read1(version) },
          { label: "Show what changed", icon: "branch", run: () => changes(version) },
          ...(version.is_active ? [] : [
            { label: "Activate", icon: "check", scope: "write", run: () => activate(version) },
            { label: "Delete", icon: "trash", danger: true, scope: "write", run: () => remove(`/api/prompts/versions/${version.id}`, `Delete ${title(version).toLowerCase()}?`, "The agent keeps the prompt that it has.") },
          ]),
        ] })),
      h("p", { class: "dim clamp" }, version.description || firstLine(version.system_prompt)),
      h("p", { class: "faint" }, `saved ${ago(version.created_at)} · ${count(version.system_prompt.length, "character")}`));
  }

  const read1 = (version) => showDialog({ title: title(version), body: [version.description ? h("p", {}, version.description) : null, codeBlock(version.system_prompt, "", { plain: true })] });

  async function changes(version) {
    const found = await get(`/api/prompts/versions/${version.id}/diff`, { signal });
    const from = found.from_version === null ? "Nothing was saved before." : `Compared with version ${found.from_version}: ${count(found.added, "line")} added, ${number(found.removed)} removed.`;
    await showDialog({ title: `What ${title(version).toLowerCase()} changes`, body: [h("p", {}, from), found.diff ? codeBlock(found.diff, "diff", { plain: true }) : h("p", { class: "dim" }, "The texts are equal.")] });
  }

  async function activate(version) {
    const text = `${nameOf(agent)} uses this prompt from its next turn on. What it has now is lost unless it is a version.`;
    if (!(await confirm({ title: `Activate ${title(version).toLowerCase()}?`, text, action: "Activate", danger: false, run: () => call("POST", `/api/prompts/versions/${version.id}/activate`, {}) }))) return;
    toast("Activated");
    await again();
  }

  async function remove(path, question, text) {
    if (!(await confirm({ title: question, text, run: () => call("DELETE", path) }))) return;
    toast("Deleted");
    await again();
  }

  async function save() {
    const own = (await get(`/api/agents/${encodeURIComponent(agent)}`, { signal })).system_prompt ?? "";
    const text = field("System prompt", textBox(own, 12), { hint: "At first, the prompt that the agent has." });
    const about = field("Description", textInput("", { maxlength: "1024" }), { hint: "What is different, in a few words." });
    const made = await ask({
      title: "Save a version", action: "Save", wide: true, fields: { system_prompt: text, description: about }, body: [text, about],
      submit: () => call("POST", `/api/agents/${encodeURIComponent(agent)}/prompts/versions`, { system_prompt: text.control.value, description: about.control.value }),
    });
    if (!made) return;
    toast(`Saved as version ${made.version}`);
    await again();
  }

  async function compare() {
    if (versions.length < 2) return showError(new Error("Save at least two versions first."));
    const options = versions.map((version) => [version.id, `${title(version)}: ${version.description || firstLine(version.system_prompt)}`.slice(0, 80)]);
    const name = field("Name", textInput("", { maxlength: "128" }));
    const first = field("First version", choice(options, options.at(1)[0]), { hint: "The other one is compared with this one." });
    const second = field("Second version", choice(options, options[0][0]));
    const helpful = toggle("Only count answers that someone called helpful", false);
    const made = await ask({
      title: "Compare two versions", action: "Create", fields: { name, variants: first, prompt_version_id: first }, body: [name, h("div", { class: "form-row" }, first, second), helpful],
      submit: () => call("POST", `/api/agents/${encodeURIComponent(agent)}/prompts/experiments`, {
        name: name.control.value, variants: [first, second].map((of) => ({ prompt_version_id: of.control.value })), success_criteria: { require_user_helpful: helpful.box.checked },
      }),
    });
    if (!made) return;
    toast("Created. Start it when you are ready.");
    await again();
  }

  const act = async (experiment, what, said, more = {}) => {
    await call("POST", `/api/prompts/experiments/${experiment.id}/${what}`, more);
    toast(said);
    await again();
  };

  async function complete(experiment) {
    const winner = field("Winner", choice([["", "The one that the figures show, if any"], ...experiment.variants.map((variant) => [variant.id, variant.name])], ""));
    const activates = toggle("Activate the winner's version", false);
    const done = await ask({
      title: `Complete “${experiment.name}”`, action: "Complete", fields: { winner_variant_id: winner }, body: [winner, activates],
      submit: () => call("POST", `/api/prompts/experiments/${experiment.id}/complete`, { winner_variant_id: winner.control.value || null, activate: activates.box.checked }),
    });
    if (!done) return;
    toast(done.winner_variant_id ? "Completed" : "Completed without a winner");
    await again();
  }

  function experimentCard(experiment, figures) {
    const { status } = experiment;
    const items = () => [
      ...(["draft", "paused"].includes(status) ? [{ label: "Start", icon: "play", scope: "write", run: () => act(experiment, "start", "Started") }] : []),
      ...(status === "running" ? [{ label: "Pause", icon: "pause", scope: "write", run: () => act(experiment, "pause", "Paused") }] : []),
      ...(["running", "paused"].includes(status) ? [{ label: "Complete…", icon: "flag", scope: "write", run: () => complete(experiment) }] : []),
      ...(status === "running" ? [] : [{ label: "Delete", icon: "trash", danger: true, scope: "write", run: () => remove(`/api/prompts/experiments/${experiment.id}`, `Delete “${experiment.name}”?`, "Its figures are deleted with it.") }]),
    ];
    return h("li", { class: "card connection-card", data: { key: `${experiment.id} ${status} ${JSON.stringify(figures?.metrics ?? null)}` } },
      h("div", { class: "bar-row tight" }, h("h3", { class: "grow cut" }, experiment.name), h("span", { class: `badge ${BADGES[status]}` }, status), menuButton({ label: `More for ${experiment.name}`, class: "quiet small only-icon", items })),
      figures ? table(experiment, figures) : h("p", { class: "dim" }, experiment.variants.map((variant, at) => `${variant.name}: ${experiment.traffic_split[at]} %`).join(", ")));
  }

  function table(experiment, figures) {
    const verdict = (id) => figures.significance.comparisons.find((of) => of.variant_id === id);
    const row = (of) => {
      const [kind, word] = VERDICTS[verdict(of.variant_id)?.verdict] ?? ["", "first"];
      const won = experiment.winner_variant_id === of.variant_id;
      return h("tr", {}, h("th", { scope: "row" }, of.variant_name, won ? " ★ winner" : ""), h("td", { class: "num" }, number(of.impressions)), h("td", { class: "num" }, `${number(of.wins)} (${percent(of.win_rate)})`),
        h("td", { class: "num" }, of.avg_cost_usd === null ? "–" : money(of.avg_cost_usd)), h("td", { class: "num" }, of.avg_latency_ms === null ? "–" : duration(of.avg_latency_ms)),
        h("td", {}, h("span", { class: `badge ${kind}`, title: verdict(of.variant_id)?.reason ?? "" }, word)));
    };
    const said = figures.significance.comparisons.filter((of) => of.p_value !== null).map((of) => `p = ${of.p_value.toFixed(4)}`);
    return h("div", { class: "stack tight-stack" },
      h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": `Figures of ${experiment.name}` },
        h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Variant"), ["Turns", "Wins", "Cost", "Latency"].map((name) => h("th", { scope: "col", class: "num" }, name)), h("th", { scope: "col" }, "Beside the first"))), h("tbody", {}, figures.metrics.map(row)))),
      h("p", { class: "hint", title: figures.significance.note }, [figures.significance.test, ...said].join(" · ")));
  }

  /** Shows the prompts of the agent that the address names. */
  async function route([id]) {
    agent = id ?? null;
    fill(ctx.actions);
    fill(body);
    if (agent === null) {
      const nothing = emptyState({ icon: icon("file", 28), title: "Choose an agent", text: "Keep versions of its system prompt, go back to an earlier one, and find out which one works best." });
      fill(body, nothing);
      const { items: agents } = await page("/api/agents", "agents", { limit: OFFERED }, { signal });
      if (agents.length > 0 && nothing.isConnected) nothing.append(examples(agents.map(({ id, name, description }) => ({ id, title: name, text: description })), ({ id }) => ctx.go(["library", "prompts", id]), { title: "Your agents", sign: "agents" }));
      return undefined;
    }
    learnAll([agent], () => { if (agent === id && picker.control.value === "") picker.control.value = nameOf(id); }, { signal });
    try {
      await read();
    } catch (error) {
      if (error?.code !== "prompt_intelligence_disabled") throw error;
      return fill(body, emptyState({
        icon: icon("settings", 28), title: "Prompt versions are disabled", text: "Set [prompt_intelligence] enabled = true in the configuration.",
        actions: [seesAll() && h("a", { class: "button", href: "#/settings/config" }, "Open the configuration")],
      }));
    }
    if (can("write")) fill(ctx.actions,
      h("button", { type: "button", onclick: () => compare().catch(showError) }, icon("branch", 18), "Compare"),
      h("button", { type: "button", class: "primary", onclick: () => save().catch(showError) }, icon("plus", 18), "Save a version"));
  }

  ctx.onRoute((path) => route(path).catch(showError));
  await route(ctx.path);
  ctx.every(EVERY_MS, () => (agent === null || !versionList.isConnected || document.querySelector("dialog[open], .menu:popover-open") ? null : read()));
}
