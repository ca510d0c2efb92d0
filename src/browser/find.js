function (selector) {
  let found = null;
  try {
    found = document.querySelector(selector);
  } catch (_) {
    // No selector: a text.
  }
  if (!found) {
    const wanted = selector.trim().toLowerCase();
    const tags = "a,button,[role=button],[role=link],[role=tab],[role=menuitem],input[type=submit],input[type=button]," +
      "input[type=reset],label,summary,option,[onclick]";
    const text = (e) => (e.innerText || e.value || e.getAttribute("aria-label") || e.title || "").trim().toLowerCase();
    const all = [...document.querySelectorAll(tags)];
    found = wanted && (all.find((e) => text(e) === wanted) || all.find((e) => text(e).includes(wanted)));
  }
  if (!found) {
    return null;
  }
  window.__agentsvc_found = found;
  found.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const at = found.getBoundingClientRect();
  return {
    x: at.left + at.width / 2,
    y: at.top + at.height / 2,
    drawn: at.width > 0 && at.height > 0,
  };
}
