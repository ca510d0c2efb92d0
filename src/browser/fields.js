function (max) {
  const quoted = (text) => '"' + text.replace(/["\\]/g, "\\$&") + '"';
  const selector = (e) => {
    const tag = e.tagName.toLowerCase();
    if (e.id && document.querySelectorAll("#" + CSS.escape(e.id)).length === 1) {
      return "#" + CSS.escape(e.id);
    }
    const named = e.name ? `${tag}[name=${quoted(e.name)}]` : null;
    if (named && document.querySelectorAll(named).length === 1) {
      return named;
    }
    const alike = [...document.querySelectorAll(tag)];
    return (e.innerText || "").trim() ? quoted(e.innerText.trim().slice(0, 60)) : `${tag} number ${alike.indexOf(e) + 1}`;
  };
  const lines = [];
  for (const e of document.querySelectorAll("input,textarea,select,button,[contenteditable=true]")) {
    if (lines.length >= max) {
      break;
    }
    if (e.type === "hidden" || !e.getClientRects().length) {
      continue;
    }
    const label = (e.labels && e.labels[0] && e.labels[0].innerText) || e.getAttribute("aria-label") || e.placeholder || "";
    const text = e.tagName === "BUTTON" || e.type === "submit" ? e.innerText || e.value : "";
    const kind = e.tagName === "INPUT" ? `input ${e.type}` : e.tagName.toLowerCase();
    lines.push(`${selector(e)}: ${kind} ${(text || label).trim().slice(0, 80)}`.trim());
  }
  return lines.join("\n");
}
