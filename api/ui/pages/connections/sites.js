// Web chats: the sites that have one, with the line for their pages.

import { copyText } from "../../lib/code.js";
import { h, refill } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";

/** The line that puts the chat of a site into a page. */
const lineOf = (site) => `<script src="${location.origin}/widget.js" data-token="${site.token}" async></script>`;

/** The section of the sites. It is hidden where there are none. */
export class SiteList {
  constructor() {
    this.shown = "";
    this.items = h("ul", { class: "tool-list", "aria-label": "Sites" });
    this.node = h("section", { class: "card stack", "aria-label": "Web chats", hidden: true }, h("h2", {}, "Web chats"),
      h("p", { class: "hint" }, "Put the line of a site into its pages. If browsers reach the daemon at another address, replace the address."), this.items);
  }

  set(sites) {
    const text = JSON.stringify(sites);
    if (text === this.shown) return;
    this.shown = text;
    this.node.hidden = sites.length === 0;
    refill(this.items, sites.map((site) => h("li", {}, h("div", { class: "bar-row" },
      h("span", { class: "grow two" }, h("strong", { class: "cut" }, site.name), h("small", { class: "faint cut" }, `${site.agent} answers on ${site.allowed_origins.join(", ")}`)),
      h("button", { type: "button", class: "small", data: { key: `copy ${site.name}` }, "aria-label": `Copy the line for ${site.name}`, onclick: () => copyText(lineOf(site)) }, icon("copy", 16), "Copy line")))));
  }
}
