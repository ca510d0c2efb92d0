// Images, recordings and videos that the daemon keeps: read with the key, shown and played in place.

import { blob } from "./api.js";
import { showError } from "./dialogs.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";

/** Pictures that are opened in a window of their own: no kind that may hold a script. */
const RASTER = /^image\/(png|jpeg|webp|gif)$/;

/** Reads pictures when they come into sight. */
const inSight = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    inSight.unobserve(target);
    target.dispatchEvent(new Event("in-sight"));
  }
}, { rootMargin: "200px" });

/** A picture: read with the key, shown small, opened whole. One that is `lazy` is read when it comes into sight. */
export function imageNode({ file_id: id, path = `/api/uploads/${id}`, filename, url, lazy = false }) {
  const name = filename ?? "picture";
  const picture = h("img", { alt: name, loading: "lazy" });
  const open = h("button", { class: "picture", type: "button", title: name, "aria-label": `Open ${name}` }, picture);
  const show = (address) => {
    picture.src = address;
    open.onclick = () => window.open(address, "_blank", "noopener");
  };
  const read = () => blob(path).then((content) => {
    if (!RASTER.test(content.type)) throw new TypeError("no image");
    show(URL.createObjectURL(content));
  }).catch(() => {
    open.replaceWith(h("span", { class: "badge" }, `${name} was deleted`));
  });
  if (url) show(url);
  else if (lazy) {
    open.addEventListener("in-sight", read, { once: true });
    inSight.observe(open);
  } else read();
  return open;
}

/** Plays a recording or a video (`kind` is audio or video), which is read with the key on the first click. */
export function playerNode(path, kind, name = "") {
  const what = kind === "video" ? "the video" : "the recording";
  const play = h("button", { class: "small", type: "button", "aria-label": name ? `Play ${what}: ${name}` : null }, icon("play", 15), `Play ${what}`);
  play.onclick = async () => {
    play.disabled = true;
    try {
      await playAt(play, path, kind, name || `Generated ${kind}`);
    } catch (error) {
      play.disabled = false;
      showError(error);
    }
  };
  return play;
}

/** Reads the file at `path`, puts a player in the place of `node`, and begins to play; gives the player. */
export async function playAt(node, path, kind, label, options) {
  const content = await blob(path, options);
  if (!content.type.startsWith(`${kind}/`)) throw new TypeError(`The file is no ${kind}.`);
  const player = h(kind, { class: "player", controls: true, src: URL.createObjectURL(content), "aria-label": label });
  const hadFocus = node === document.activeElement || document.activeElement === document.body;
  node.replaceWith(player);
  if (hadFocus) player.focus({ preventScroll: true });
  // A browser may want another click; the controls are there.
  await player.play().catch(() => {});
  return player;
}
