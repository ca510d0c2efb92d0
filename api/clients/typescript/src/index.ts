export * from "./api/index.js";
export { type Options, Stream, type StreamEvent } from "./calls.js";
export { Client, type ClientOptions } from "./client.js";
export * from "./errors.js";
