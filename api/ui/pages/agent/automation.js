// What makes an agent act by itself: its schedules and its triggers, as the pages of all have them.

import { h, fill, useStyles } from "../../lib/dom.js";
import * as times from "../automation/times.js";
import * as triggers from "../automation/triggers.js";

export async function mount(root, ctx) {
  await useStyles(new URL("../../styles/automation.css", import.meta.url));

  /** A part of the page with buttons of its own; addresses and keys are those of the agent's page. */
  function part(title, module) {
    const [actions, body] = [h("div", { class: "buttons" }), h("div")];
    const node = h("section", { class: "stack", "aria-label": title }, h("div", { class: "bar-row" }, h("h2", { class: "grow" }, title), actions), body);
    const own = Object.assign(Object.create(ctx), { actions, query: new URLSearchParams(), onNew: () => {}, onRoute: () => {}, key: () => {} });
    return { node, mount: () => module.mount(body, own) };
  }

  const parts = [part("Schedules", times), part("Triggers", triggers)];
  fill(root, h("div", { class: "stack agent-automation" }, parts.map(({ node }) => node)));
  await Promise.all(parts.map((one) => one.mount()));
}
