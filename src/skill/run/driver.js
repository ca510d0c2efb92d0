"use strict";
const fs = require("fs");
const path = require("path");
const url = require("url");
const entry = path.resolve(process.argv[1]);
process.argv = [process.argv[0], entry];

let used = false;
const write = process.stdout.write;
process.stdout.write = function (...args) {
  used = used || (args[0] != null && args[0].length > 0);
  return write.apply(process.stdout, args);
};

function fail(error) {
  process.stderr.write(String((error && error.stack) || error) + "\n");
  process.exitCode = 1;
}

async function load() {
  if (!entry.endsWith(".mjs")) {
    try {
      return require("module")._load(entry, null, true);
    } catch (error) {
      const isModule = error && (error.code === "ERR_REQUIRE_ESM" || error.code === "ERR_REQUIRE_ASYNC_MODULE" ||
        (error instanceof SyntaxError && /import|export/.test(error.message)));
      if (!isModule) throw error;
    }
  }
  return import(url.pathToFileURL(entry).href);
}

function runOf(loaded) {
  const inner = loaded && loaded.default;
  for (const found of [loaded && loaded.run, inner && inner.run, inner, loaded]) {
    if (typeof found === "function") return found;
  }
  return null;
}

load().then((loaded) => {
  const run = runOf(loaded);
  if (!run) return;
  process.once("beforeExit", async () => {
    if (used) return;
    try {
      const bytes = Buffer.alloc(fs.fstatSync(0).size);
      fs.readSync(0, bytes, 0, bytes.length, 0);
      const result = await run(JSON.parse(bytes.toString("utf8")).input);
      if (result !== undefined || !used) {
        process.stdout.write((typeof result === "string" ? result : JSON.stringify(result === undefined ? null : result)) + "\n");
      }
    } catch (error) {
      fail(error);
    }
  });
}, fail);
