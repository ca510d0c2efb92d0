// A field that takes a model: a button with its name, which opens the list of all models that can be asked.

import { showError } from "../../lib/dialogs.js";
import { field, fill, h } from "../../lib/dom.js";
import { modelText } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";

/** `made.set({ provider, model })` shows a model, `made.read()` gives it; empty words are the default, which `fallback()` says. `onchange(model)` gets another one. */
export function modelField({ title, fallback, hint = "", onchange }) {
  let present = { provider: "", model: "" };
  const button = h("button", { class: "pick", type: "button", onclick: () => pick().catch(showError) });
  const none = h("button", { class: "quiet small", type: "button", hidden: true, onclick: () => { take({ provider: "", model: "" }); button.focus(); } }, "Use the default model");
  const made = field("Model", button, { hint });
  made.insertBefore(none, made.lastChild);

  async function pick() {
    const { pickModel } = await import("./models.js");
    const chosen = await pickModel({ title: title(), present });
    if (chosen) take({ provider: chosen.provider, model: chosen.id });
  }

  function take(model) {
    made.set(model);
    onchange(model);
  }

  made.set = (model) => {
    present = { provider: model.provider ?? "", model: model.model ?? "" };
    const { provider, model: id } = present;
    const text = provider || id ? modelText(provider, id) : fallback();
    fill(button, h("span", { class: "cut grow" }, text), icon("chevron", 14));
    button.setAttribute("aria-label", `Model: ${text}`);
    none.hidden = !provider && !id;
  };
  made.read = () => present;
  return made;
}
