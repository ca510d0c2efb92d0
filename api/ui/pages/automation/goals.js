// The tree of goals: read level by level, with the keys of a tree.

import { call, get, page } from "../../lib/api.js";
import { agentField, agentLink, learnAll, nameOf } from "../../lib/agents.js";
import { choice, textBox, textInput, toggle } from "../../lib/controls.js";
import { ask, confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h } from "../../lib/dom.js";
import { ago, count, moment, when } from "../../lib/format.js";
import { examples, GOALS } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";

const PAGE = 200;
const STATES = [["pending", "Pending"], ["in_progress", "In progress"], ["completed", "Completed"], ["cancelled", "Cancelled"]];
const BADGES = { pending: "", in_progress: "accent", completed: "good", cancelled: "warn" };

/** A moment of the API as a `datetime-local` field has it, and back. */
const localOf = (text) => {
  const date = moment(text);
  return date ? new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16) : "";
};

export async function mount(root, ctx) {
  const { signal } = ctx;
  const tree = h("ul", { class: "tree", role: "tree", "aria-label": "Goals", onkeydown: onKey });
  let status = "";
  /** Goals whose parts are shown, or are being read; they stay so when the tree is read anew. */
  const opened = new Set();
  /** What had the focus when the tree was read anew: a goal, and which of its controls. */
  let held = null;
  const filter = choice([["", "All goals"], ...STATES], "", { "aria-label": "Show", onchange: () => { status = filter.value; again(); } });
  fill(ctx.actions, filter, h("button", { class: "primary", type: "button", onclick: () => edit(null, null).catch(showError) }, icon("plus", 18), "New goal"));

  const again = () => read().catch(showError);

  async function read() {
    // With a filter the goals are shown flat: what is above them may be of another status.
    const found = await page("/api/goals", "goals", status === "" ? { parent_id: "none", limit: PAGE } : { status, limit: PAGE }, { signal });
    if (found.items.length === 0) {
      const nothing = emptyState({
        icon: icon("flag", 28), title: status === "" ? "No goals yet" : "No matching goals", text: "Set a goal for an agent. It sees its open goals in every turn and can report progress and create subgoals.",
        actions: [h("button", { class: "primary", type: "button", onclick: () => edit(null, null).catch(showError) }, icon("plus", 18), "New goal")],
      });
      if (status === "") nothing.append(examples(GOALS, ({ goal }) => edit(null, null, goal).catch(showError), { sign: "flag" }));
      fill(root, nothing);
      return;
    }
    const isFirst = tree.childElementCount === 0;
    // A second read may come before what the first one opens is there.
    held = heldNow() ?? held;
    fill(tree, found.items.map((goal) => branch(goal, 1)), moreButton(found.next, (cursor) => page("/api/goals", "goals", { parent_id: status === "" ? "none" : "", status, limit: PAGE, cursor }, { signal }), tree, 1));
    if (tree.parentNode?.parentNode !== root) fill(root, h("div", { class: "card tree-card" }, tree));
    tree.querySelector("[role=treeitem]")?.setAttribute("tabindex", "0");
    learnNames();
    holdOn();
    for (const node of tree.querySelectorAll("[role=treeitem]")) if (isFirst || opened.has(node.dataset.id)) expand(node, true).catch(showError);
  }

  const controlsOf = (item) => [item, ...item.querySelectorAll(":scope > .tree-row button")];

  function heldNow() {
    const item = document.activeElement.closest("[role=treeitem]");
    return item && tree.contains(item) ? { id: item.dataset.id, at: controlsOf(item).indexOf(document.activeElement) } : null;
  }

  /** Gives the focus back to what had it, as soon as its goal is shown again. */
  function holdOn() {
    const item = held && document.activeElement === document.body ? tree.querySelector(`[data-id="${held.id}"]`) : null;
    // Within a branch that is still closed nothing takes the focus.
    if (!item?.checkVisibility()) return;
    tree.querySelector("[role=treeitem][tabindex='0']")?.setAttribute("tabindex", "-1");
    item.tabIndex = 0;
    controlsOf(item)[held.at]?.focus({ preventScroll: true });
    held = null;
  }

  function learnNames() {
    const shown = [...tree.querySelectorAll("[data-agent]")];
    learnAll(shown.map((node) => node.dataset.agent), () => { for (const node of shown) node.textContent = nameOf(node.dataset.agent); }, { signal });
  }

  function moreButton(next, readOn, into, level) {
    if (!next) return null;
    const button = h("button", { type: "button", class: "small", onclick: async () => {
      try {
        const found = await readOn(next);
        button.parentNode.replaceWith(...found.items.map((goal) => branch(goal, level)), moreButton(found.next, readOn, into, level) ?? "");
        learnNames();
      } catch (error) {
        showError(error);
      }
    } }, "Show more");
    return h("li", { role: "none", class: "tree-more" }, button);
  }

  function branch(goal, level) {
    const kids = h("ul", { role: "group", hidden: true });
    const isLate = goal.due_at && ["pending", "in_progress"].includes(goal.status) && Date.parse(goal.due_at) < Date.now();
    const item = h("li", {
      role: "treeitem", tabindex: "-1", "aria-level": level, "aria-expanded": goal.has_children ? "false" : null, data: { id: goal.id, status: goal.status }, "aria-label": `${goal.title}, ${goal.status.replace("_", " ")}`,
    }, h("div", { class: "tree-row" },
      goal.has_children ? h("button", { type: "button", class: "quiet small only-icon tree-twist", tabindex: "-1", "aria-label": `Subgoals of ${goal.title}`, onclick: () => expand(item).catch(showError) }, icon("chevron", 16)) : h("span", { class: "tree-twist" }),
      h("div", { class: "grow tree-text" }, h("button", { type: "button", class: "link-button", tabindex: "-1", onclick: () => edit(goal, null).catch(showError) }, goal.title),
        h("small", { class: "faint" }, goal.agent_id ? agentLink(goal.agent_id) : "No agent", goal.note ? ` · ${goal.note}` : "")),
      goal.due_at ? h("span", { class: `badge ${isLate ? "bad" : ""}`, title: when(goal.due_at) }, `${isLate ? "due " : ""}${ago(goal.due_at)}`) : null,
      h("span", { class: `badge ${BADGES[goal.status]}` }, goal.status.replace("_", " ")),
      menuButton({ label: `More for ${goal.title}`, class: "quiet small only-icon", items: () => [
        ...STATES.filter(([key]) => key !== goal.status).map(([key, label]) => ({ label: `Mark as ${label.toLowerCase()}`, icon: "check", run: () => change(goal, { status: key }) })),
        { label: "Add a subgoal", icon: "plus", run: () => edit(null, goal) },
        { label: "Edit", icon: "edit", run: () => edit(goal, null) },
        { label: "Delete", icon: "trash", danger: true, run: () => remove(goal) },
      ] })), kids);
    item.kids = kids;
    item.level = level;
    return item;
  }

  async function expand(item, wanted = item.getAttribute("aria-expanded") !== "true") {
    if (!item.hasAttribute("aria-expanded")) return;
    if (wanted) opened.add(item.dataset.id);
    else opened.delete(item.dataset.id);
    if (wanted && item.kids.childElementCount === 0) {
      const readOn = (cursor) => page(`/api/goals/${item.dataset.id}/children`, "children", { limit: PAGE, cursor }, { signal });
      const found = await readOn(null);
      fill(item.kids, found.items.map((goal) => branch(goal, item.level + 1)), moreButton(found.next, readOn, item.kids, item.level + 1));
      learnNames();
      for (const node of item.kids.children) if (opened.has(node.dataset.id)) expand(node, true).catch(showError);
    }
    item.setAttribute("aria-expanded", String(wanted));
    item.kids.hidden = !wanted;
    holdOn();
  }

  function onKey(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.target !== item) return;
    const seen = [...tree.querySelectorAll("[role=treeitem]")].filter((node) => node.offsetParent !== null);
    const at = seen.indexOf(item);
    const go = (to) => {
      if (!to) return;
      item.tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    };
    const acts = {
      ArrowDown: () => go(seen[at + 1]), ArrowUp: () => go(seen[at - 1]), Home: () => go(seen[0]), End: () => go(seen.at(-1)),
      ArrowRight: () => (item.getAttribute("aria-expanded") === "false" ? expand(item, true).catch(showError) : go(seen[at + 1])),
      ArrowLeft: () => (item.getAttribute("aria-expanded") === "true" ? expand(item, false).catch(showError) : go(item.parentNode.closest("[role=treeitem]"))),
      Enter: () => item.querySelector(".link-button").click(), " ": () => item.querySelector(".link-button").click(),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  async function change(goal, body) {
    await call("PUT", `/api/goals/${goal.id}`, body);
    toast("Saved");
    await read();
  }

  async function remove(goal) {
    const text = goal.has_children ? `“${goal.title}” and all of its subgoals are deleted.` : `“${goal.title}” goes.`;
    let done = null;
    if (!(await confirm({ title: "Delete this goal?", text, run: async () => { done = await call("DELETE", `/api/goals/${goal.id}`); } }))) return;
    toast(`Deleted ${count(done?.deleted ?? 1, "goal")}`);
    await read();
  }

  async function edit(goal, parent, draft = null) {
    const title = field("Title", textInput((goal ?? draft)?.title, { maxlength: 256, required: true }));
    const about = field("Description", textBox((goal ?? draft)?.description, 4));
    const note = field("Note", textInput(goal?.note, { maxlength: 1024 }), { hint: "A short progress note." });
    const agent = agentField("Agent", { id: goal?.agent_id ?? parent?.agent_id ?? null, optional: true });
    const due = field("Due", h("input", { type: "datetime-local", value: localOf(goal?.due_at) }));
    const state = field("Status", choice(STATES, goal?.status ?? "pending"));
    const forms = goal || parent ? null : await templates(title, about);
    const made = await ask({
      title: goal ? "Edit goal" : parent ? `Subgoal of “${parent.title.slice(0, 60)}”` : "New goal", action: goal ? "Save" : "Create", wide: true,
      fields: { title, description: about, note, agent_id: agent, due_at: due, status: state },
      body: [forms, title, about, goal ? note : null, h("div", { class: "form-row three" }, agent, due, state)],
      submit: async () => {
        const at = due.control.value ? new Date(due.control.value).toISOString() : null;
        const body = { title: title.control.value.trim(), description: about.control.value, agent_id: await agent.read(), due_at: at, status: state.control.value };
        if (goal) return call("PUT", `/api/goals/${goal.id}`, { ...body, note: note.control.value });
        const root = await call("POST", "/api/goals", { ...body, parent_id: parent?.id ?? null });
        if (forms?.parts.box.checked) {
          for (const part of forms.chosen()?.children ?? []) {
            await call("POST", "/api/goals", { title: part.title, description: part.description ?? "", agent_id: body.agent_id, parent_id: root.id });
          }
        }
        return root;
      },
    });
    if (!made) return;
    toast(goal ? "Saved" : "Created");
    await read();
  }

  /** A choice of forms for common goals, which fills in title and description. */
  async function templates(title, about) {
    const { templates: found } = await get("/api/goals/templates", { signal }).catch(() => ({ templates: [] }));
    if (found.length === 0) return null;
    const label = (form) => form.name ?? form.title;
    const chosen = () => (pick.value === "" ? null : found[Number(pick.value)]);
    const parts = toggle("Include subgoals", true);
    parts.hidden = true;
    const pick = choice([["", "Empty"], ...found.map((form, at) => [String(at), label(form)])], "", {
      onchange: () => {
        const form = chosen();
        parts.hidden = !form?.children?.length;
        if (!form) return;
        title.control.value = form.title ?? label(form);
        about.control.value = form.description ?? "";
      },
    });
    const made = field("Template", pick);
    made.append(parts);
    return Object.assign(made, { parts, chosen });
  }

  await read();
  ctx.every(10_000, () => (tree.contains(document.activeElement) || document.querySelector("dialog[open], .menu:popover-open") ? null : read()));
}
