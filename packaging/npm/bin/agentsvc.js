#!/usr/bin/env node
// Runs the program of this platform, which is a package of its own.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const name = `agentsvc-${process.platform}-${process.arch}`;

function program() {
  try {
    return require.resolve(`${name}/agentsvc`);
  } catch {
    console.error(`agentsvc: there is no package ${name}. It is missing, or this platform is not supported; build from source instead.`);
    process.exit(1);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// Ctrl-C in a terminal reaches both, and a second one would not let the daemon end its turns.
process.on("SIGINT", () => {
  if (!process.stdin.isTTY) child.kill("SIGINT");
});
child.on("error", (error) => {
  console.error(`agentsvc: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
