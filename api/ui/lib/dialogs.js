// Toasts, questions and forms in dialogs. All are native `<dialog>` elements: they keep the focus and close on Escape.

import { Failure } from "./api.js";
import { fill, h, holdFocus, uniqueId } from "./dom.js";
import { icon } from "./icons.js";
import { allowed } from "./me.js";

/** How long a toast without a fault stays. */
const TOAST_MS = 5000;

/** Where toasts stand, once there was one. It is held here because it moves. */
let tray = null;

/**
 * Brings the toasts where they can be seen and dismissed: into the topmost dialog, for everything outside that is inert, or back
 * to the page.
 */
function placeToasts() {
  const place = [...document.querySelectorAll("dialog:modal")].at(-1) ?? document.body;
  if (tray.parentNode !== place) place.append(tray);
  // Opened anew, it lies above what was opened meanwhile.
  if (tray.matches(":popover-open")) tray.hidePopover();
  if (tray.childElementCount > 0) tray.showPopover();
}

/** Takes a dialog that was closed out of the page; toasts that stand in it go on. */
export function removeDialog(dialog) {
  if (dialog.contains(tray)) placeToasts();
  dialog.remove();
}

/** Closes all dialogs but the login: for when another address is opened. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[open]:not(.login)")) dialog.close();
}

/** A short message in the corner: `toast("Saved")`; one of kind "bad" stays until it is dismissed. */
export function toast(text, { kind = "good", action = null } = {}) {
  tray ??= document.getElementById("toasts");
  const close = () => made.remove();
  const made = h("div", { class: `toast ${kind}`, role: kind === "bad" ? "alert" : null },
    icon(kind === "bad" ? "alert" : "check", 18),
    h("span", {}, text),
    action ? h("button", { class: "quiet", type: "button", onclick: () => { close(); action.run(); } }, action.label) : null,
    h("button", { class: "quiet only-icon", type: "button", "aria-label": "Dismiss", onclick: close }, icon("close", 16)));
  // The same words twice are one message.
  for (const other of tray.children) if (other.textContent === made.textContent) other.remove();
  while (tray.children.length >= 4) tray.firstChild.remove();
  tray.append(made);
  placeToasts();
  if (kind !== "bad") setTimeout(close, TOAST_MS);
}

/** Tells people about an error; one of an aborted call is none. Hand it to `.catch`. */
export function showError(error) {
  if (!error || error.name === "AbortError") return;
  toast(faultText(error), { kind: "bad" });
}

/** The words of an error: those of the daemon, or that this page has a fault. */
export function faultText(error) {
  if (error instanceof Failure) return error.message;
  console.error(error);
  return `Error in this page: ${error?.message ?? error}`;
}

/**
 * Opens a dialog and waits for its end. `body` is what stands in it. `submit` is called when it is confirmed: what it
 * gives is the result, and what it throws is shown (with `fields`, by the name of the answer's `field`, at that field).
 * Dismissed, it gives null. The focus begins at the first control, or at that with `data-first`. `danger` marks a step that cannot be undone; `wide` is for editors. The focus goes back to where it was,
 * or to what took the place of that.
 */
export function ask({ title, body = [], submit = async () => true, action = "Save", danger = false, wide = false, fields = {}, cancel = "Cancel" }) {
  return new Promise((resolve) => {
    let result = null;
    const id = uniqueId("dialog");
    const fault = h("p", { class: "fault", role: "alert" });
    const confirm = h("button", { class: danger ? "danger" : "primary", type: "submit" }, action);
    const leave = h("button", { type: "button", onclick: () => dialog.close() }, cancel);
    const form = h("form", { method: "dialog", novalidate: true },
      h("header", {}, h("h2", { id }, title),
        h("button", { class: "quiet only-icon", type: "button", "aria-label": "Close", onclick: () => dialog.close() }, icon("close"))),
      h("div", { class: "dialog-body" }, body), fault, h("footer", { class: "buttons" }, cancel ? leave : null, confirm));
    const dialog = h("dialog", { class: wide ? "wide" : null, "aria-labelledby": id }, form);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      fault.textContent = "";
      for (const field of Object.values(fields)) field.fault("");
      confirm.disabled = true;
      try {
        result = (await submit()) ?? true;
        dialog.close();
      } catch (error) {
        const field = Object.entries(fields).find(([name]) => error.field && error.field.startsWith(name))?.[1];
        // It stands at its field already.
        if (error.target) return;
        if (field) {
          field.fault(error.message);
          field.control.focus();
        } else {
          fault.textContent = faultText(error);
        }
      } finally {
        confirm.disabled = false;
      }
    });
    // Ctrl+Enter confirms from within a text box, where Enter is a new line.
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    dialog.addEventListener("close", () => {
      removeDialog(dialog);
      // The browser gave the focus back, unless what had it is gone.
      giveBack();
      resolve(result);
    });
    const giveBack = holdFocus();
    document.body.append(dialog);
    dialog.showModal();
    const first = dialog.querySelector(".dialog-body [data-first]") ?? dialog.querySelector(".dialog-body :is(input, textarea, select):not([type='file'])");
    (first ?? (danger && cancel ? leave : confirm)).focus();
  });
}

/** Asks before something that cannot be undone: true when it is confirmed. `run` may do it, and fail into the dialog. */
export async function confirm({ title, text, action = "Delete", danger = true, run = async () => true }) {
  return (await ask({ title, body: [h("p", {}, text)], action, danger, submit: async () => { await run(); return true; } })) === true;
}

/** Shows something to read, with a button that closes it. */
export function show({ title, body, wide = true }) {
  return ask({ title, body, wide, action: "Close", cancel: null });
}

/**
 * A menu of actions behind a button: `menuButton({ label: "More", icon: "more", items: () => [{ label, icon, run, danger }] })`.
 * `items` is asked each time it opens: a `heading` stands above those that follow it. Those with `scope` or `all` are for some keys only (me.js). `key` tells the button from others for `refill`, where its label may change.
 */
export function menuButton({ label, icon: name = "more", items, key = null, class: style = "quiet only-icon" }) {
  const id = uniqueId("menu");
  const menu = h("div", { class: "menu", popover: "auto", id, role: "menu", "aria-label": label });
  const button = h("button", { class: style, type: "button", "aria-label": label, title: label, "aria-haspopup": "menu", popovertarget: id, data: key === null ? {} : { key } }, icon(name));
  menu.addEventListener("beforetoggle", (event) => {
    button.setAttribute("aria-expanded", String(event.newState === "open"));
    if (event.newState !== "open") return;
    const shown = allowed(items()).filter((item, at, all) => !item.heading || (all[at + 1] && !all[at + 1].heading));
    fill(menu, shown.map((item) => (item.heading ? h("div", { class: "menu-heading", role: "presentation" }, item.heading) : h("button", {
      class: item.danger ? "danger-text" : null, type: "button", role: "menuitem", tabindex: "-1",
      onclick: () => { menu.hidePopover(); Promise.resolve(item.run()).catch(showError); },
    }, icon(item.icon ?? "chevron", 18), item.label))));
    const at = button.getBoundingClientRect();
    const up = at.bottom > innerHeight * 0.6;
    menu.style.setProperty("right", `${Math.max(8, innerWidth - at.right)}px`);
    menu.style.setProperty("top", up ? "auto" : `${at.bottom + 4}px`);
    menu.style.setProperty("bottom", up ? `${innerHeight - at.top + 4}px` : "auto");
  });
  menu.addEventListener("toggle", (event) => { if (event.newState === "open") menu.querySelector("button")?.focus(); });
  menu.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...menu.querySelectorAll("button")];
    all[(all.indexOf(document.activeElement) + step + all.length) % all.length]?.focus();
  });
  return h("span", { class: "menu-anchor" }, button, menu);
}
