// Requests to the server that the page came from: with the key, and with the server's own words
// where it refuses.
import { element } from "./dom.js";

export class ApiFailure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Says why a view stays empty.
export function explainFailure(error) {
  if (!(error instanceof ApiFailure)) return "the server does not answer";
  if (error.status === 401 || error.status === 403) return "needs an admin's API key";
  return error.message;
}

const watchers = [];
// `watcher` is told whether the last request reached the server, whenever that changes.
export const watchConnection = (watcher) => watchers.push(watcher);
let reached = true;

function tell(now) {
  if (now === reached) return;
  reached = now;
  for (const watcher of watchers) watcher(now);
}

function keyHeader() {
  const key = element("key").value.trim();
  return key ? { Authorization: `Bearer ${key}` } : {};
}

async function failureOf(reply) {
  const text = await reply.text();
  try {
    return new ApiFailure(reply.status, JSON.parse(text).error.message);
  } catch {
    return new ApiFailure(reply.status, `status ${reply.status}`);
  }
}

// A reply that is a success. A fetch that reaches nobody is a TypeError.
export async function request(path, options = {}) {
  let reply;
  try {
    reply = await fetch(path, { ...options, headers: { ...keyHeader(), ...options.headers } });
  } catch (error) {
    if (error instanceof TypeError) tell(false);
    throw error;
  }
  tell(true);
  if (reply.ok) return reply;
  throw await failureOf(reply);
}

export const getText = async (path) => (await request(path)).text();
export const getJson = async (path) => (await request(path)).json();

function posting(body, signal) {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
}

export const postJson = async (path, body, signal) => (await request(path, posting(body, signal))).json();

// Yields the data of a stream's events as they arrive.
export async function* postStream(path, body, signal) {
  const reply = await request(path, posting(body, signal));
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new ApiFailure(0, event.error.message);
      yield event;
    }
  }
}
