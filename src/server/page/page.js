// The page: a chat over the public API, and two periodic views of the server.
"use strict";

const LOOK_EVERY_MS = 1000;
const element = (id) => document.getElementById(id);

function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function headers() {
  const key = element("key").value;
  return key ? { Authorization: `Bearer ${key}` } : {};
}

const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
const seconds = (ms) => (ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`);

// ---- The strip: /metrics, the names that any dashboard reads.

// Sums samples by name: {"vllm:num_requests_running": 2, …}
function readMetrics(text) {
  const sums = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-z][a-z0-9_:]*)(?:\{.*\})? (\S+)$/.exec(line);
    if (match) sums.set(match[1], (sums.get(match[1]) ?? 0) + Number(match[2]));
  }
  return sums;
}

async function lookAtMetrics() {
  const reply = await fetch("/metrics", { headers: headers() });
  if (!reply.ok) return;
  const sums = readMetrics(await reply.text());
  element("running").textContent = sums.get("vllm:num_requests_running");
  element("waiting").textContent = sums.get("vllm:num_requests_waiting");
  const usage = sums.get("vllm:kv_cache_usage_perc");
  element("usage").textContent = percent(usage);
  element("usage-bar").value = usage;
  const asked = sums.get("vllm:prefix_cache_queries_total");
  const found = sums.get("vllm:prefix_cache_hits_total");
  element("hits").textContent = asked > 0 ? percent(found / asked) : "–";
}

// ---- The cache: /cache/map.

const PUBLIC_HUE = 205;
const NO_REGION_HUE = 45;
// Neighbouring numbers get hues that are far apart.
const hueOf = (region) => (region === null ? NO_REGION_HUE : (PUBLIC_HUE + region * 137.5) % 360);

function paintCell(cell, [, active, reusable, region]) {
  const state = active > 0 ? "active" : reusable > 0 ? "reusable" : "free";
  cell.className = `cell ${state}`;
  cell.style.setProperty("--hue", hueOf(region));
}

function showMap(map) {
  const place = element("map");
  while (place.childElementCount > map.cells.length) place.lastElementChild.remove();
  while (place.childElementCount < map.cells.length) place.append(make("div", "cell"));
  map.cells.forEach((cell, index) => paintCell(place.children[index], cell));
  const { all, free, active, reusable } = map.blocks;
  const each = map.blocks_per_cell > 1 ? `, ${map.blocks_per_cell} a square` : "";
  element("map-note").textContent =
    `${all} blocks${each}: ${free} free, ${active} active (strong), ${reusable} reusable (pale)`;
  place.setAttribute("aria-label", `Block map: ${element("map-note").textContent}`);
  element("legend").replaceChildren(
    ...map.regions.slice(0, 12).map(({ region, tenant, blocks }) => {
      const entry = make("li");
      const colour = make("span", "cell active");
      colour.style.setProperty("--hue", hueOf(region));
      const name = region === 0 ? "public" : (tenant ?? `salt ${region}`);
      entry.append(colour, `${name}: ${blocks}`);
      return entry;
    }),
  );
}

function showBranches(branches) {
  element("branches").replaceChildren(
    ...branches.map((branch) => {
      const entry = make("li", branch.held ? "held" : "");
      const prefix = make("span", "prefix", branch.public ? branch.text.trim() || "(blank)" : "(private)");
      prefix.style.setProperty("padding-left", `${Math.min(branch.level, 8)}em`);
      prefix.title = branch.public ? branch.text : "";
      entry.append(make("span", "size", `${branch.blocks} blocks`), prefix);
      entry.title = `${branch.tokens} tokens up to the next fork, ${branch.blocks} blocks with all that follows`;
      return entry;
    }),
  );
}

async function lookAtCache() {
  const reply = await fetch("/cache/map", { headers: headers() });
  if (!reply.ok) {
    const why = reply.status === 401 || reply.status === 403 ? "needs an admin key" : "is not there yet";
    element("map-note").textContent = `The map ${why}.`;
    return;
  }
  const map = await reply.json();
  if (map.age_s === null) return;
  showMap(map);
  showBranches(map.branches);
}

async function look() {
  if (!document.hidden) await Promise.allSettled([lookAtMetrics(), lookAtCache()]);
  setTimeout(look, LOOK_EVERY_MS);
}

// ---- The chat.

const conversation = []; // {role, content}
let running = null; // AbortController of the stream that is read

function showMessage(role) {
  const entry = make("li", role);
  const text = make("div", "text");
  entry.append(make("span", "hidden", role === "user" ? "You: " : "Assistant: "), text);
  element("messages").append(entry);
  return { entry, text };
}

function facts(pairs) {
  const list = make("dl", "facts");
  for (const [name, value] of pairs) {
    const pair = make("div");
    pair.append(make("dt", "", name), make("dd", "", value));
    list.append(pair);
  }
  return list;
}

function sourcesText(bySource) {
  return Object.entries(bySource)
    .filter(([, share]) => share.tokens > 0)
    .map(([name, share]) => `${name} ${share.tokens} (${share.cached} cached)`)
    .join(", ");
}

// Shows how fast the output of a request came and what the cache had for it.
function showFacts(entry, times, usage, why) {
  const pairs = [];
  if (times.first !== null) pairs.push(["TTFT", seconds(times.first - times.begin)]);
  if (usage) {
    const writing = times.end - times.first;
    const rest = usage.completion_tokens - 1;
    if (rest > 0 && writing > 0) pairs.push(["speed", `${((1000 * rest) / writing).toFixed(1)} tok/s`]);
    const details = usage.prompt_tokens_details;
    pairs.push(["output", `${usage.completion_tokens} tokens`]);
    pairs.push(["prompt", `${usage.prompt_tokens} tokens`]);
    pairs.push(["cached", `${details.cached_tokens} tokens`]);
    pairs.push(["by source", sourcesText(details.by_source)]);
    const drafts = usage.speculation;
    if (drafts) pairs.push(["drafts", `${drafts.accepted_tokens} of ${drafts.draft_tokens} tokens accepted`]);
  }
  entry.append(facts(pairs));
  if (!why) return;
  const words = why.advice ?? why.reason;
  if (words) entry.append(make("p", "why", `${why.matched_tokens} of ${why.prompt_tokens} prompt tokens were in the cache: ${words}`));
}

// Yields the data of a stream's events as they arrive.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  }
}

function requestBody() {
  const system = element("system").value.trim();
  const temperature = element("temperature").value;
  return {
    messages: system ? [{ role: "system", content: system }, ...conversation] : conversation,
    ...(temperature === "" ? {} : { temperature: Number(temperature) }),
    max_tokens: Number(element("max-tokens").value),
    stream: true,
    stream_options: { include_usage: true },
    cache_explain: true,
  };
}

async function write(text, times, signal) {
  const reply = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers() },
    body: JSON.stringify(requestBody()),
    signal,
  });
  if (!reply.ok) throw new Error((await reply.json()).error.message);
  const outcome = { usage: null, why: null };
  for await (const event of events(reply.body)) {
    if (event.error) throw new Error(event.error.message);
    const piece = event.choices[0]?.delta?.content ?? "";
    if (event.choices.length > 0 && "content" in event.choices[0].delta) times.end = performance.now();
    if (piece && times.first === null) times.first = times.end;
    text.textContent += piece;
    outcome.usage = event.usage ?? outcome.usage;
    outcome.why = event.cache_explain ?? outcome.why;
  }
  return outcome;
}

async function ask(question) {
  conversation.push({ role: "user", content: question });
  showMessage("user").text.textContent = question;
  const { entry, text } = showMessage("assistant");
  const times = { begin: performance.now(), first: null, end: null };
  running = new AbortController();
  setBusy(true);
  try {
    const { usage, why } = await write(text, times, running.signal);
    showFacts(entry, times, usage, why);
    entry.dataset.done = "true";
  } catch (error) {
    const stopped = error.name === "AbortError";
    entry.append(make("p", stopped ? "quiet" : "error", stopped ? "stopped" : error.message));
    entry.dataset.done = "error";
  }
  conversation.push({ role: "assistant", content: text.textContent });
  running = null;
  setBusy(false);
  entry.scrollIntoView({ block: "nearest" });
}

function setBusy(busy) {
  element("send").disabled = busy;
  element("stop").disabled = !busy;
  element("messages").setAttribute("aria-busy", String(busy));
}

function submit(event) {
  event.preventDefault();
  const question = element("prompt").value.trim();
  if (!question || running) return;
  element("prompt").value = "";
  ask(question);
}

async function showModel() {
  const reply = await fetch("/v1/models", { headers: headers() });
  if (reply.ok) element("model").textContent = (await reply.json()).data[0].id;
}

element("ask").addEventListener("submit", submit);
element("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) running.abort();
});
element("stop").addEventListener("click", () => running?.abort());
element("fresh").addEventListener("click", () => {
  running?.abort();
  conversation.length = 0;
  element("messages").replaceChildren();
  element("prompt").focus();
});
element("key").addEventListener("change", showModel);
showModel();
look();
