// The API of the daemon, as its OpenAPI document describes it.

import { blob, get, saveAs } from "./api.js";
import { show } from "./dialogs.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";

/** Shows it, and offers the document. */
export async function showApi() {
  const { version } = await get("/api/version");
  const text = await (await blob("/api/openapi.json")).text();
  await show({
    title: "The API of this daemon",
    wide: false,
    body: [
      h("p", {}, `agentsvc ${version}. This page only uses the documented API. Its OpenAPI 3 description:`),
      h("button", { type: "button", onclick: () => saveAs(new Blob([text], { type: "application/json" }), "openapi.json") }, icon("download", 18), "openapi.json"),
    ],
  });
}
