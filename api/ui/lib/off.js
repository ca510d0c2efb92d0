// What stands where a part of the daemon is switched off by a key that only config.toml can set: the lines, and where the key is.

import { call } from "./api.js";
import { copyText } from "./code.js";
import { showError, toast } from "./dialogs.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { can } from "./me.js";

/** The page of the configuration with one key. */
export const configAddress = (key) => `#/settings/config?q=${encodeURIComponent(key)}`;

/**
 * How a part is turned on: `key` is the key, `lines` what config.toml needs. `again` looks at the part once more; without it, the daemon
 * must be restarted.
 */
export function turnOn({ key, lines, again = null }) {
  const reload = async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      const told = await call("POST", "/api/config/reload", {});
      if (told.status === "unchanged") toast("config.toml has not changed. Add the lines first.", { kind: "bad" });
      await again();
    } finally {
      button.disabled = false;
    }
  };
  return [
    h("p", { class: "hint" }, again ? "Add these lines to config.toml, then reload it:" : "Add these lines to config.toml, then restart the daemon:"),
    h("pre", { class: "code-box", tabindex: "0", role: "region", "aria-label": "Lines of config.toml" }, lines),
    h("div", { class: "buttons" },
      h("button", { type: "button", class: "small", "aria-label": "Copy the lines", data: { key: "copy lines" }, onclick: () => copyText(lines).catch(showError) }, icon("copy", 16), "Copy"),
      h("a", { class: "button small", href: configAddress(key) }, "Show ", h("code", {}, key)),
      again && can("admin") ? h("button", { type: "button", class: "small", data: { key: "reload lines" }, onclick: (event) => reload(event).catch(showError) }, icon("retry", 16), "Reload config.toml") : null),
  ];
}

/** A whole part that is off; `title` and `text` say what, the rest is as for `turnOn`. */
export function partOff({ title, text, ...rest }) {
  return h("div", { class: "empty off-part" }, icon("key", 28), h("h2", {}, title), h("p", {}, text), turnOn(rest));
}
