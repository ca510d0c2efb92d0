// An address that names no page.

import { fill, h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";

export const title = "Page not found";

export async function mount(root) {
  fill(root, h("div", { class: "scroll" }, h("div", { class: "empty" }, icon("search", 28), h("h1", {}, title),
    h("p", {}, "There is no page at this address. Check the link, or search for what you need."),
    h("div", { class: "buttons" }, h("a", { class: "button primary", href: "#/chat" }, icon("chat", 18), "Open chat")))));
}
