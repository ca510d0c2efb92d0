// The skills that are installed, and the skill whose name is in the address.

import { call, get } from "../../lib/api.js";
import { textBox, textInput, toggle } from "../../lib/controls.js";
import { ask, show as showDialog, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill } from "../../lib/dom.js";
import { count, number } from "../../lib/format.js";
import { examples, SKILLS } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { Pending } from "./pending.js";
import { SkillView } from "./skill.js";
import { lineList, runtimeText, warningList } from "./words.js";

/** Cards that are shown before "Show more". */
const PAGE = 60;

/** Says what was installed, with what the scan found. */
export async function tellInstalled(told) {
  const warnings = warningList(told.warnings);
  if (warnings.length === 0) return toast(`Installed ${told.skill} ${told.version ?? ""}`.trim());
  await showDialog({
    title: `Installed ${told.skill}, with warnings`,
    body: [h("p", {}, "The scan refused nothing, but found what you should know before agents use it:"), lineList(warnings, { label: "Warnings", none: "", sign: "alert" })],
  });
}

/** Asks where a skill comes from and installs it; gives the reply, or null. */
export async function installSkill() {
  const source = field("Source", textInput("", { class: "code", spellcheck: "false", placeholder: "owner/repository/path" }), {
    hint: "A folder on this machine, an https address of a .zip or .tar.gz, a Git address, owner/repository/path on GitHub, clawhub:name, or a name of the registry.",
  });
  const verify = toggle("Check its checksums", true);
  const told = await ask({
    title: "Install a skill", action: "Install", fields: { source, name: source }, body: [source, verify, h("p", { class: "hint" }, "Its text is always scanned for instructions against its reader.")],
    submit: () => call("POST", "/api/skills/install", { source: source.control.value.trim(), verify: verify.box.checked }),
  });
  if (told) await tellInstalled(told);
  return told;
}

async function createSkill(draft = {}) {
  const name = field("Name", textInput(draft.name, { class: "code", spellcheck: "false", placeholder: "release-notes" }), { hint: "Small letters, digits, - and _." });
  const description = field("Description", textInput(draft.description, { maxlength: "1024" }), { hint: "When an agent should use it. Agents always see this line." });
  const text = field("Instructions", textBox(draft.prompt_context, 12), { hint: "Markdown. An agent reads them when it uses the skill." });
  const tags = field("Tags", textInput(draft.tags?.join(", ")), { hint: "Separated by commas. The first is the category." });
  return ask({
    title: "Create a skill", action: "Create", wide: true, fields: { name, description, prompt_context: text, tags }, body: [h("div", { class: "form-row" }, name, tags), description, text],
    submit: () => call("POST", "/api/skills/create", {
      name: name.control.value.trim(), description: description.control.value.trim(), prompt_context: text.control.value,
      tags: tags.control.value.split(",").map((tag) => tag.trim()).filter(Boolean),
    }),
  });
}

export async function mount(root, ctx) {
  const { signal } = ctx;
  let skills = [];
  let filter = "";
  let category = "";
  let shown = PAGE;
  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search by name or description", "aria-label": "Search skills", oninput: () => { filter = search.value.toLowerCase(); shown = PAGE; show(); } });
  const categories = h("select", { "aria-label": "Category", onchange: () => { category = categories.value; shown = PAGE; show(); } });
  const list = h("ul", { class: "connection-cards", "aria-label": "Skills" });
  const more = h("button", { type: "button", hidden: true, onclick: () => { shown += PAGE; show(); } }, "Show more");
  const body = h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), categories, counts), list, more);
  const pending = new Pending({ signal, changed: async () => { await read(); show(); } });
  const place = h("div", {});
  const view = h("div", { class: "stack" }, pending.node, place);
  const nothing = emptyState({
    icon: icon("tool", 28), title: "No skills yet", text: "A skill teaches agents how to do one kind of work, such as reviewing code or filling in forms.",
    actions: [h("a", { class: "button", href: "#/library/find" }, "Find skills"), can("admin") && h("button", { type: "button", class: "primary", onclick: () => add(installSkill).catch(showError) }, icon("plus", 18), "Install a skill")],
  });
  if (can("admin")) nothing.append(examples(SKILLS, (draft) => add(() => createSkill(draft)).catch(showError), { title: "Or write one, beginning with an example", sign: "file" }));

  const buttons = () => [
    h("button", { type: "button", title: "Read the skills folder again", onclick: () => reload().catch(showError) }, icon("retry", 18), "Reload"),
    h("button", { type: "button", onclick: () => add(() => createSkill()).catch(showError) }, icon("edit", 18), "Create"),
    h("button", { type: "button", class: "primary", onclick: () => add(installSkill).catch(showError) }, icon("plus", 18), "Install"),
  ];

  async function read() {
    const told = await get("/api/skills", { signal });
    ({ skills } = told);
    fill(categories, h("option", { value: "" }, "All categories"), told.categories.map((name) => h("option", { value: name, selected: name === category }, name)));
  }

  function show() {
    if (view.parentNode !== root) fill(root, view);
    const wanted = skills.length === 0 ? nothing : body;
    if (wanted.parentNode !== place) fill(place, wanted);
    const text = (skill) => [skill.name, skill.description, ...(skill.tags ?? [])].join(" ").toLowerCase();
    const rows = skills.filter((skill) => text(skill).includes(filter) && (category === "" || skill.category === category || skill.tags?.includes(category)));
    counts.textContent = count(rows.length, "skill");
    more.hidden = rows.length <= shown;
    refill(list, rows.slice(0, shown).map(card), rows.length === 0 ? h("li", { class: "dim" }, "No matching skill.") : null);
  }

  function card(skill) {
    const unmet = skill.requirements_met === false;
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, icon(skill.tools_count > 0 ? "tool" : "file", 20), h("h2", { class: "grow cut" }, h("a", { href: `#/library/skills/${encodeURIComponent(skill.name)}`, data: { skill: skill.name } }, skill.name)),
        unmet ? h("span", { class: "badge warn" }, "needs something") : null),
      h("p", { class: "dim clamp" }, skill.description),
      h("p", { class: "faint" }, [skill.version, runtimeText(skill.runtime), skill.tools_count > 0 ? count(skill.tools_count, "tool") : null].filter(Boolean).join(" · ")));
  }

  async function reload() {
    const told = await call("POST", "/api/skills/reload", {});
    toast(`${number(told.total ?? skills.length)} skills read`);
    await read();
    show();
  }

  async function add(run) {
    const told = await run();
    if (!told) return;
    await read();
    ctx.go(["library", "skills", told.skill ?? told.name]);
  }

  /** Shows the list, or the skill that the address names. */
  async function route([name]) {
    fill(ctx.actions, name === undefined && can("admin") ? buttons() : []);
    if (name === undefined) {
      await Promise.all([read(), pending.read()]);
      return show();
    }
    const one = new SkillView({ name, signal, gone: () => ctx.go(["library"]) });
    await one.read();
    fill(root, one.node);
    one.focus();
  }

  ctx.onRoute((path) => route(path).catch(showError));
  if (can("admin")) ctx.key("n", "Install a skill", () => add(installSkill).catch(showError));
  await route(ctx.path);
}
