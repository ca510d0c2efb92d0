// The Python package that channels need: whether it is missing, and how it is installed.

import { Failure, get } from "../../lib/api.js";
import { copyText } from "../../lib/code.js";
import { showError } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";

const COMMANDS = "python3 -m venv /opt/channels\n/opt/channels/bin/pip install librefang-sdk";
/** New channels use the Python of the channels that there are: a bare python3 sees only the packages of the system. */
const LINES = `[[sidecar_channels]]
name = "alerts"
command = "/opt/channels/bin/python"
args = ["-m", "librefang.sidecar.adapters.ntfy"]
[sidecar_channels.env]
NTFY_TOPIC = "my-topic"`;

/** Does this text of the daemon say that the package is missing? */
export const isPackageMissing = (text) => /SDK is missing/.test(text ?? "");

/** Text to copy, with the button that does. */
const box = (what, text) => h("div", { class: "bar-row" },
  h("pre", { class: "code-box grow", tabindex: "0", role: "region", "aria-label": what }, text),
  h("button", { type: "button", class: "small", "aria-label": `Copy: ${what}`, data: { key: what }, onclick: () => copyText(text).catch(showError) }, icon("copy", 16), "Copy"));

/** How the package is installed, and how the daemon finds it. */
export function installation() {
  const step = (title, text, ...inner) => h("li", {}, h("div", { class: "stack tight-stack" }, h("strong", {}, title), text ? h("p", { class: "dim" }, text) : null, inner));
  return [
    h("ol", { class: "steps" },
      step("Install the package", "In a terminal of the machine that runs the daemon.", box("Commands that install the package", COMMANDS)),
      step("Name its Python in config.toml", "Change the topic to one of yours. Channels that you set up here use this Python, too.", box("A first channel", LINES)),
      step("Reload the configuration", "", box("The command that reloads", "agentsvc config reload"))),
    h("p", { class: "hint" }, h("code", {}, "docs/channels.md"), " describes the setup. ", h("a", { href: "https://pypi.org/project/librefang-sdk/", target: "_blank", rel: "noopener noreferrer" }, "librefang-sdk on PyPI")),
  ];
}

/** Says that the package is missing, with what to do; `isMissing` is false until `check` has found that it is. */
export class PackageNotice {
  /** `onchange` is called when what is known changes. */
  constructor({ signal, onchange }) {
    Object.assign(this, { signal, onchange, isMissing: false });
    this.node = h("div", { "aria-live": "polite" });
    this.state = h("span", { class: "dim", role: "status" });
    this.again = h("button", { type: "button", class: "primary", onclick: () => this.checkAgain().catch(showError) }, icon("retry", 16), "Check again");
  }

  /** Asks the adapter of one of `entries` for its values: what one lacks, all of them lack. */
  async check(entries) {
    this.entries = entries;
    const one = entries.find(({ adapter }) => adapter);
    if (!one) return;
    let isMissing = false;
    try {
      isMissing = isPackageMissing((await get(`/api/channels/registry/${encodeURIComponent(one.id)}`, { signal: this.signal })).schema_error);
    } catch (error) {
      // The form of a channel says what else is in the way.
      if (!(error instanceof Failure)) throw error;
    }
    if (isMissing === this.isMissing) return;
    this.isMissing = isMissing;
    fill(this.node, isMissing ? h("section", { class: "card", "aria-label": "Missing package" }, h("div", { class: "stack" },
      h("h2", {}, "Prepare channels, once"), h("p", { class: "dim" }, "Channels need the Python package librefang-sdk, which has the adapters of the platforms."), installation(), h("div", { class: "buttons" }, this.again, this.state))) : null);
    this.onchange();
  }

  async checkAgain() {
    this.again.disabled = true;
    this.state.textContent = "Checking…";
    try {
      await this.check(this.entries);
    } finally {
      this.again.disabled = false;
      this.state.textContent = this.isMissing ? "The package is still missing." : "";
    }
  }
}
