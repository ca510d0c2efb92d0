function (text) {
  let field = window.__agentsvc_found;
  if (field instanceof HTMLLabelElement && field.control) {
    field = field.control;
  }
  if (field instanceof HTMLSelectElement) {
    const wanted = text.trim().toLowerCase();
    const option = [...field.options].find((o) => o.value.toLowerCase() === wanted || o.text.trim().toLowerCase() === wanted);
    if (!option) {
      return null;
    }
    field.value = option.value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
    return "set";
  }
  const takesText = field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement;
  if (!takesText && !field.isContentEditable) {
    return null;
  }
  if (takesText && (field.disabled || field.readOnly || ["checkbox", "radio", "file", "submit", "button"].includes(field.type))) {
    return null;
  }
  field.focus();
  if (takesText) {
    field.select();
  } else {
    getSelection().selectAllChildren(field);
  }
  return "typed";
}
