"""A look for barriers: names of controls, labels, contrast, landmarks, headings, ids, focus. What it finds fails the test.

Two look: the script below, which also knows this page's own rules (one h1, nothing wider than the window), and axe-core, which
comes with the Python package `axe-playwright-python`; of axe, what it calls serious or critical fails."""

import functools
import importlib.util
import pathlib

# What axe need not tell: it asks for a landmark around everything, and dialogs, toasts and the link over the navigation have none.
AXE_LEFT_OUT = ["region"]

SCRIPT = r"""
() => {
  const found = [];
  const say = (rule, node, detail = "") => {
    const path = node === document ? "document" : node.outerHTML.slice(0, 110).replace(/\s+/g, " ");
    found.push(`${rule}: ${detail} ${path}`);
  };
  const modal = document.querySelector("dialog[open]");
  const scope = modal ?? document.body;
  const all = [...scope.querySelectorAll("*")];
  const seen = (node) => node.checkVisibility({ opacityProperty: false, visibilityProperty: true, contentVisibilityAuto: true });
  const isSr = (node) => node.closest(".sr") !== null;
  const text = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.nodeType !== Node.ELEMENT_NODE || node.getAttribute("aria-hidden") === "true") return "";
    if (node.nodeName === "IMG" || node.getAttribute("role") === "img") return node.getAttribute("alt") ?? node.getAttribute("aria-label") ?? "";
    return [...node.childNodes].map(text).join(" ");
  };
  const byIds = (ids) => ids.split(/\s+/).map((id) => document.getElementById(id)).filter(Boolean).map(text).join(" ");
  const nameOf = (node) => {
    const labelledby = node.getAttribute("aria-labelledby");
    if (labelledby) return byIds(labelledby).trim();
    const label = node.getAttribute("aria-label");
    if (label) return label.trim();
    if (node.labels?.length) return [...node.labels].map(text).join(" ").trim();
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(node.nodeName)) return (node.title || "").trim();
    return (text(node) || node.title || "").trim();
  };

  // Names.
  const controls = "button, a[href], input:not([type=hidden]), select, textarea, summary, [role=button], [role=tab], [role=menuitem], [role=switch], [role=listbox], [role=combobox], dialog, [role=region], nav, aside, [role=img], svg[role], table";
  for (const node of all.filter((node) => node.matches(controls) && seen(node))) {
    const needs = !["NAV", "ASIDE", "TABLE"].includes(node.nodeName) || (node.nodeName !== "TABLE" && scope.querySelectorAll(node.nodeName).length > 1);
    if (needs && nameOf(node) === "") say("no name", node);
  }
  for (const node of all.filter((node) => node.nodeName === "IMG" && !node.hasAttribute("alt"))) say("no alt", node);

  // Ids, and what refers to them.
  const ids = new Map();
  for (const node of document.querySelectorAll("[id]")) ids.set(node.id, (ids.get(node.id) ?? 0) + 1);
  for (const [id, times] of ids) if (times > 1) found.push(`id twice: ${id}`);
  for (const node of all) {
    for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "aria-activedescendant", "for", "popovertarget"]) {
      for (const id of (node.getAttribute(name) ?? "").split(/\s+/).filter(Boolean)) if (!ids.has(id)) say("refers to nothing", node, `${name}=${id}`);
    }
  }

  // Roles and what must stand in them.
  const parents = { option: "[role=listbox]", listitem: "[role=list], ul, ol", menuitem: "[role=menu]", tab: "[role=tablist]", row: "table, [role=table], [role=grid]" };
  for (const [role, parent] of Object.entries(parents)) {
    for (const node of scope.querySelectorAll(`[role=${role}]`)) if (!node.parentElement.closest(parent)) say("out of place", node, role);
  }
  for (const node of all.filter((node) => node.nodeName === "LI" && !["UL", "OL", "MENU"].includes(node.parentElement.nodeName))) say("li without a list", node);
  for (const node of all.filter((node) => node.nodeName === "DT" || node.nodeName === "DD")) if (!node.closest("dl")) say("out of a dl", node);
  for (const node of all.filter((node) => node.matches("button, a[href], summary"))) {
    if (node.querySelector("button, a[href], input, select, textarea")) say("a control in a control", node);
  }
  for (const node of all.filter((node) => node.matches("[role=option], [role=menuitem]"))) {
    if (node.querySelector("button, a[href], input, select")) say("a control in an option", node);
  }
  for (const node of all.filter((node) => node.getAttribute("aria-hidden") === "true" && seen(node))) {
    if (node.querySelector("button, a[href], input:not([tabindex='-1'])")) say("hidden, but can have the focus", node);
  }

  // Landmarks, title, language, headings.
  if (!modal) {
    if (document.querySelectorAll("main").length !== 1) found.push("there must be one main");
    if (!document.querySelector("nav")) found.push("there is no nav");
    const ones = [...document.querySelectorAll("h1")].filter(seen);
    if (ones.length !== 1) found.push(`there must be one h1, there are ${ones.length}`);
  }
  if (!document.documentElement.lang) found.push("no lang");
  if (!document.title) found.push("no title");
  let level = 0;
  for (const node of all.filter((node) => /^H[1-6]$/.test(node.nodeName) && seen(node))) {
    const now = Number(node.nodeName[1]);
    if (level > 0 && now > level + 1 && !node.closest(".md")) say("a heading left out", node, `h${level} to h${now}`);
    level = now;
  }

  // Things to touch are large enough (WCAG 2.2, 2.5.8), links within a line apart.
  for (const node of all.filter((node) => node.matches("button, select, input, [role=button]") && seen(node) && !isSr(node))) {
    const box = node.getBoundingClientRect();
    if (box.width > 0 && (box.width < 16 || box.height < 16 || Math.max(box.width, box.height) < 20)) say("too small", node, `${Math.round(box.width)}x${Math.round(box.height)}`);
  }

  // Contrast, computed on a canvas so that every way to write a colour counts.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), rgba(getComputedStyle(document.body).backgroundColor));
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => { const c = v / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const dimmed = (node) => { for (let at = node; at; at = at.parentElement) if (Number(getComputedStyle(at).opacity) < 1) return true; return false; };
  const texts = new Map();
  for (const node of all) {
    const own = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim() !== "");
    const box = node.getBoundingClientRect();
    if (!own || !seen(node) || isSr(node) || box.width === 0 || node.closest(":disabled, [aria-disabled=true], [aria-hidden=true], option") || dimmed(node)) continue;
    const style = getComputedStyle(node);
    const ink = node.namespaceURI.endsWith("svg") ? style.fill : style.color;
    const ground = behind(node);
    const [a, b] = [light(over(rgba(ink), ground)), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) texts.set(`${ink} on ${ground.map(Math.round)}`, [node, ratio]);
  }
  for (const [pair, [node, ratio]] of texts) say("contrast", node, `${ratio.toFixed(2)} ${pair}`);

  // Nothing is wider than the window.
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push(`the page is ${document.documentElement.scrollWidth} wide in a window of ${innerWidth}`);
  for (const node of all.filter((node) => seen(node) && node.matches("button, input, select, textarea, h1, h2, h3"))) {
    const box = node.getBoundingClientRect();
    const scrolls = (at) => at && at !== document.body && (/(auto|scroll)/.test(getComputedStyle(at).overflowX) || scrolls(at.parentElement));
    if (box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(node.parentElement)) say("out of the window", node, `${Math.round(box.left)} to ${Math.round(box.right)}`);
  }
  return found;
}
"""


# Waits for what moves, but for what moves without an end.
AT_REST = """() => Promise.all(document.getAnimations()
  .filter((one) => one.playState === "running" && one.effect?.getComputedTiming().endTime !== Infinity)
  .map((one) => one.finished.catch(() => {})))"""


@functools.cache
def axe():
    """The text of axe-core, as the package brings it."""
    found = importlib.util.find_spec("axe_playwright_python")
    assert found, "axe is missing, with which every page is looked at: pip install axe-playwright-python"
    return next(pathlib.Path(found.origin).parent.glob("axe*.js")).read_text()


def axe_findings(page):
    """What axe finds that is serious or critical: a line for each element."""
    # The script is put in by the debugger: the page's own policy allows none from elsewhere, and stays as it is.
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(axe())
    rules = {rule: {"enabled": False} for rule in AXE_LEFT_OUT}
    found = page.evaluate("(rules) => axe.run(document, { rules, resultTypes: ['violations'] })", rules)["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"axe {one['id']} ({one['impact']}): {node['html'][:160]} {node['failureSummary'][:300]}" for one in grave for node in one["nodes"][:5]]


def check(page, where):
    """Fails with everything that is found on what the page shows, once nothing is on its way any more."""
    page.evaluate(AT_REST)
    found = page.evaluate(SCRIPT) + axe_findings(page)
    assert not found, f"{where}:\n" + "\n".join(found)


def tab_order(page, steps, key="Tab", until=None):
    """The names of what the Tab key (or Shift+Tab) reaches, one after the other, up to `steps` or the name `until`."""
    names = []
    for _ in range(steps):
        page.keyboard.press(key)
        names.append(page.evaluate(r"""() => {
          const node = document.activeElement;
          if (!node || node === document.body) return "";
          return node.getAttribute("aria-label") || node.textContent.trim().slice(0, 40) || node.labels?.[0]?.textContent || "";
        }"""))
        if names[-1] == until:
            break
    return names
