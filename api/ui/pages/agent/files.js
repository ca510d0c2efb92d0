// The workspace of an agent: its files, to look at, fetch, add and delete.

import { blob, call, download, get, send } from "../../lib/api.js";
import { codeBlock } from "../../lib/code.js";
import { confirm, menuButton, show, showError, toast } from "../../lib/dialogs.js";
import { emptyState, fill, h } from "../../lib/dom.js";
import { ago, bytes, count, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";

const EVERY_MS = 5000;
/** Larger files are fetched and not shown. */
const SHOWN_BYTES_MAX = 512 << 10;
/** The most that a file may have that is added here. */
const ADDED_BYTES_MAX = 2 << 20;

const isText = ({ content_type: type }) => /^text\/|json|xml|toml|yaml|javascript|x-sh/.test(type);
const isImage = ({ content_type: type }) => /^image\/(png|jpeg|gif|webp)$/.test(type);

export async function mount(root, ctx) {
  const { signal } = ctx;
  const path = `/api/agents/${encodeURIComponent(ctx.agent.id)}/files`;
  const addressOf = (name) => `${path}/${name.split("/").map(encodeURIComponent).join("/")}`;
  let filter = "";
  let files = [];

  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter", oninput: () => { filter = search.value.toLowerCase(); draw(); } });
  const table = new Table({
    label: "Files", signal, rowHeight: 48, slimHeight: 60, fit: true, open, keyOf: (file) => file.path, empty: "No matching files.",
    columns: [
      { label: "Name", width: "minmax(0, 3fr)", sort: (file) => file.path, cell: (file) => h("span", { class: "two" }, h("span", { class: "cut mono" }, file.path), h("small", { class: "faint cut narrow-only" }, `${bytes(file.size)}, ${ago(file.modified_at)}`)) },
      { label: "Size", width: "100px", side: true, end: true, sort: (file) => file.size, cell: (file) => bytes(file.size) },
      { label: "Changed", width: "160px", side: true, sort: (file) => file.modified_at, cell: (file) => h("time", { datetime: file.modified_at, title: when(file.modified_at) }, ago(file.modified_at)) },
      { label: "Actions", width: "60px", slim: "48px", end: true, cell: (file) => menuButton({ label: `More for ${file.path}`, class: "quiet small only-icon", items: () => [
        { label: "Download", icon: "download", run: () => download(addressOf(file.path), file.path.split("/").at(-1)) },
        { label: "Delete", icon: "trash", scope: "write", danger: true, run: () => remove(file) },
      ] }) },
    ],
  });
  const chooser = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to add", onchange: () => add([...chooser.files]).catch(showError) });
  const addButton = () => can("write") && h("button", { type: "button", class: "primary", onclick: () => chooser.click() }, icon("plus", 18), "Add files");
  const nothing = emptyState({ icon: icon("file", 28), title: "No files yet", text: "This is the workspace of the agent: what its tools write is kept here, and what you add it can read.", actions: [addButton()] });
  const list = h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), counts, h("span", { class: "grow" }), addButton()), table.root);
  const place = h("div");
  fill(root, chooser, place);

  async function read() {
    const found = await get(path, { signal });
    files = found.files.filter(({ kind }) => kind === "file");
    counts.textContent = `${count(files.length, "file")}, ${bytes(files.reduce((sum, { size }) => sum + size, 0))}${found.truncated ? ", there are more" : ""}`;
    draw();
  }

  function draw() {
    const wanted = files.length === 0 ? nothing : list;
    if (wanted.parentNode !== place) fill(place, wanted);
    table.set(files.filter((file) => file.path.toLowerCase().includes(filter)));
  }

  async function open(file) {
    try {
      if (file.size > SHOWN_BYTES_MAX || !(isText(file) || isImage(file))) return await download(addressOf(file.path), file.path.split("/").at(-1));
      if (isText(file)) {
        const text = await (await send("GET", addressOf(file.path), { signal, accept: "*/*" })).text();
        return await show({ title: file.path, body: [codeBlock(text, file.path.split(".").at(-1))] });
      }
      const url = URL.createObjectURL(await blob(addressOf(file.path), { signal }));
      await show({ title: file.path, body: [h("img", { src: url, alt: file.path })] });
      URL.revokeObjectURL(url);
    } catch (error) {
      showError(error);
    }
    return undefined;
  }

  async function add(chosen) {
    chooser.value = "";
    const large = chosen.filter(({ size }) => size > ADDED_BYTES_MAX);
    if (large.length > 0) return toast(`${large[0].name} is larger than ${bytes(ADDED_BYTES_MAX)}. Attach it to a message in the chat instead.`, { kind: "bad" });
    for (const file of chosen) await send("PUT", addressOf(file.name), { body: file, type: file.type || "application/octet-stream", signal });
    toast(chosen.length === 1 ? `${chosen[0].name} was added.` : `${count(chosen.length, "file")} were added.`);
    await again();
    return undefined;
  }

  async function remove(file) {
    if (!(await confirm({ title: `Delete ${file.path}?`, text: "The file is deleted from the workspace. It cannot be undone.", run: () => call("DELETE", addressOf(file.path)) }))) return;
    toast("Deleted");
    await again();
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
}
