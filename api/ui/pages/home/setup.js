// What stands above the overview while no language model is set up: the ways to set one up.

import { call, get } from "../../lib/api.js";
import { SAMPLE, WAYS, wayCard } from "../../lib/connect.js";
import { toast } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { can, seesAll } from "../../lib/me.js";

/** Asks an agent of the offline model something, and shows its answer in the chat. */
async function tryOffline(ctx) {
  const agents = await get("/api/agents?limit=50", { signal: ctx.signal });
  const agent = agents.find(({ model_provider: provider, state }) => provider === "builtin" && state === "Running");
  // The chat offers to create an agent where there is none.
  if (agent) await call("POST", `/api/agents/${encodeURIComponent(agent.id)}/message`, { message: SAMPLE });
  ctx.go(agent ? ["chat", agent.id] : ["chat"]);
}

/** Shows the ways in `place` while the default model is the built-in one; for those who may choose another. */
export async function showSetup(place, ctx) {
  if (!can("admin") || !seesAll()) return;
  const { default_provider: provider } = await get("/api/status?limit=1", { signal: ctx.signal });
  if (provider !== "builtin") return void fill(place);
  if (place.childElementCount > 0) return;
  const run = async (way) => {
    if (!(await way.run())) return;
    toast("The model is ready. Say something.");
    ctx.go(["chat"]);
  };
  fill(place, h("section", { class: "card stack", "aria-label": "Set up a model" },
    h("h2", {}, "Set up a model"),
    h("p", { class: "dim" }, "No language model is set up. Until then, the built-in offline model repeats what you write and runs tools on request."),
    h("ul", { class: "ways" }, WAYS.map((way) => wayCard(way, () => run(way))),
      wayCard({ icon: "chat", label: "Try it offline", text: "No account needed. A scripted model shows a tool call." }, () => tryOffline(ctx)))));
}
