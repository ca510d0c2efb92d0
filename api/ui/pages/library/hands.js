// Hands: the definitions that are installed, and the hand whose id is in the address.

import { call, get } from "../../lib/api.js";
import { textBox } from "../../lib/controls.js";
import { ask, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill } from "../../lib/dom.js";
import { count, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { HandView, activateHand } from "./hand.js";
import { sign } from "./words.js";

async function installHand() {
  const toml = field("HAND.toml", textBox("", 12, { class: "code", spellcheck: "false" }), { hint: "The definition of the hand." });
  const skill = field("SKILL.md", textBox("", 6, { class: "code", spellcheck: "false" }), { hint: "Optional. Knowledge that its agents get." });
  return ask({
    title: "Install a hand", action: "Install", wide: true, fields: { toml_content: toml, skill_content: skill }, body: [toml, skill],
    submit: () => call("POST", "/api/hands/install", { toml_content: toml.control.value, skill_content: skill.control.value.trim() || undefined }),
  });
}

export async function mount(root, ctx) {
  const { signal } = ctx;
  let hands = [];
  let filter = "";
  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search hands", "aria-label": "Search hands", oninput: () => { filter = search.value.toLowerCase(); show(); } });
  const list = h("ul", { class: "connection-cards", "aria-label": "Hands" });
  const body = h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), counts), list);
  const nothing = emptyState({
    icon: icon("agents", 28), title: "No hands yet", text: "A hand is a ready-made agent, or a team of agents, with tools, schedules and settings of its own.",
    actions: [can("admin") && h("button", { type: "button", class: "primary", onclick: () => install().catch(showError) }, icon("plus", 18), "Install a hand")],
  });

  async function read() {
    ({ hands } = await get("/api/hands", { signal }));
  }

  function show() {
    if (hands.length === 0) return void fill(root, nothing);
    if (body.parentNode !== root) fill(root, body);
    const rows = hands.filter((hand) => [hand.id, hand.name, hand.description, hand.category].join(" ").toLowerCase().includes(filter));
    counts.textContent = count(rows.length, "hand");
    refill(list, rows.map(card), rows.length === 0 ? h("li", { class: "dim" }, "No matching hand.") : null);
  }

  function card(hand) {
    const address = `#/library/hands/${encodeURIComponent(hand.id)}`;
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, sign(hand.icon, "agents"), h("h2", { class: "grow cut" }, h("a", { href: address, data: { hand: hand.id } }, hand.name || hand.id)),
        hand.active ? h("span", { class: `badge ${hand.degraded ? "warn" : "good"}` }, hand.degraded ? "running, incomplete" : "running") : hand.requirements_met ? null : h("span", { class: "badge warn" }, "needs something")),
      h("p", { class: "dim clamp" }, hand.description),
      h("p", { class: "faint" }, [hand.category, hand.tools?.length > 0 ? count(hand.tools.length, "tool") : null, hand.settings_count > 0 ? count(hand.settings_count, "setting") : null].filter(Boolean).join(" · ")),
      can("admin") && h("div", { class: "buttons" }, h("button", { type: "button", "aria-label": `Start ${hand.name || hand.id}`, data: { key: `start ${hand.id}` }, onclick: () => start(hand).catch(showError) }, icon("play", 16), "Start")));
  }

  async function start(hand) {
    const told = await activateHand(await get(`/api/hands/${encodeURIComponent(hand.id)}`, { signal }));
    if (told) ctx.go(["library", "running"]);
  }

  async function install() {
    const told = await installHand();
    if (!told) return;
    toast("Installed");
    ctx.go(["library", "hands", told.id]);
  }

  async function reload() {
    const told = await call("POST", "/api/hands/reload", {});
    toast(`${number(told.total)} hands read`);
    await read();
    show();
  }

  const buttons = () => [
    h("button", { type: "button", title: "Read the hands folder again", onclick: () => reload().catch(showError) }, icon("retry", 18), "Reload"),
    h("button", { type: "button", class: "primary", onclick: () => install().catch(showError) }, icon("plus", 18), "Install"),
  ];

  /** Shows the list, or the hand that the address names. */
  async function route([id]) {
    fill(ctx.actions, id === undefined && can("admin") ? buttons() : []);
    if (id === undefined) {
      await read();
      return show();
    }
    const view = new HandView({ id, signal, gone: () => ctx.go(["library", "hands"]), started: () => ctx.go(["library", "running"]) });
    await view.read();
    fill(root, view.node);
    view.focus();
  }

  ctx.onRoute((path) => route(path).catch(showError));
  if (can("admin")) ctx.key("n", "Install a hand", () => install().catch(showError));
  await route(ctx.path);
}
