// Library: skills, hands, prompts, extensions and plugins, with what each needs and may do, and the media that were made.

import { useStyles } from "../lib/dom.js";
import { allowed } from "../lib/me.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "Library";

export const TABS = [
  { name: "skills", all: true, label: "Skills", text: "Instructions and tools that agents can use when a task needs them.", load: () => import("./library/skills.js") },
  { name: "find", all: true, label: "Find skills", text: "Search the registry and ClawHub, and install what you find.", load: () => import("./library/find.js") },
  { name: "hands", all: true, label: "Hands", text: "Ready-made agents, or teams of agents, for ongoing work.", load: () => import("./library/hands.js") },
  { name: "running", all: true, label: "Running hands", text: "Hands at work, with their figures.", load: () => import("./library/running.js") },
  { name: "prompts", label: "Prompts", text: "Versions of an agent's system prompt, and experiments that compare them.", load: () => import("./library/prompts.js") },
  { name: "extensions", all: true, label: "Extensions", text: "Services that agents can use once you have entered your access data.", load: () => import("./library/extensions.js") },
  { name: "plugins", all: true, label: "Plugins", text: "Programs that bring memories to conversations and change what models read.", load: () => import("./library/plugins.js") },
  { name: "media", label: "Media", text: "Images, speech, videos, music and transcripts that providers made, with what they cost.", load: () => import("./library/media.js") },
];

export async function mount(root, ctx) {
  await Promise.all(["parts", "connections", "library"].map((name) => useStyles(new URL(`../styles/${name}.css`, import.meta.url))));
  return mountTabs(root, ctx, { name: "library", title, tabs: allowed(TABS) });
}
