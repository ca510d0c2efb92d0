// Server-sent events over fetch: `EventSource` can send no key and no body.

/** The lines of an event stream, however they are cut into pieces. */
export class EventParser {
  /** `onEvent(name, data, id)` gets each event; `data` is parsed when it is JSON, `id` is "" before the first one. */
  constructor(onEvent) {
    this.onEvent = onEvent;
    /** The pieces of a line whose end did not come yet. */
    this.pieces = [];
    this.name = "";
    this.data = [];
    this.id = "";
  }

  /** The next piece of the stream. */
  push(text) {
    const end = text.lastIndexOf("\n");
    // A long line comes in many pieces, which are joined once, when its end is there.
    if (end < 0) return void this.pieces.push(text);
    const lines = [...this.pieces, text.slice(0, end)].join("").split("\n");
    this.pieces = [text.slice(end + 1)];
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  line(line) {
    if (line === "") {
      if (this.data.length > 0) this.onEvent(this.name || "message", parsed(this.data.join("\n")), this.id);
      this.name = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    // A comment, which only keeps the connection alive.
    if (colon === 0) return;
    const [key, value] = colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
    if (key === "event") this.name = value;
    else if (key === "data") this.data.push(value);
    else if (key === "id") this.id = value;
  }
}

/** `text` as JSON, or as it is. */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reads `response` to its end and gives each event to `onEvent(name, data, id)`. */
export async function readEvents(response, onEvent) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser(onEvent);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.push(value);
    }
  } catch (error) {
    // What `onEvent` throws must not leave the connection open.
    reader.cancel().catch(() => {});
    throw error;
  }
}
