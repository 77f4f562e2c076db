// The chat: a conversation over POST /v1/chat/completions, with tool calls.
import { postStream } from "./api.js";
import { Answer, showText } from "./answer.js";
import { element } from "./dom.js";

const conversation = []; // messages as the API takes them
let running = null; // AbortController of the stream that is read
let number = 0; // of the conversation: what belongs to an earlier one is dropped
let pending = null; // the answer whose tool calls have no results yet

const EXAMPLE_TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

// Throws an Error that says what is wrong with the text.
function readTools() {
  const text = element("tools").value.trim();
  if (!text) return [];
  let tools;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    throw new Error(`Tools: this is not JSON: ${error.message}`);
  }
  if (!Array.isArray(tools)) throw new Error("Tools: expected an array: [{\"type\": \"function\", …}]");
  return tools;
}

function requestBody() {
  const system = element("system").value.trim();
  const temperature = element("temperature").value;
  const tools = readTools();
  return {
    messages: system ? [{ role: "system", content: system }, ...conversation] : [...conversation],
    ...(tools.length > 0 ? { tools, tool_choice: element("tool-choice").value } : {}),
    ...(temperature === "" ? {} : { temperature: Number(temperature) }),
    max_tokens: Number(element("max-tokens").value),
    stream: true,
    stream_options: { include_usage: true },
    cache_explain: true,
  };
}

async function answer() {
  let shown = null;
  const asked = number;
  setBusy(true);
  try {
    const body = requestBody();
    shown = new Answer(body);
    running = new AbortController();
    for await (const event of postStream("/v1/chat/completions", body, running.signal)) shown.take(event);
    shown.finish();
  } catch (error) {
    shown ??= new Answer({});
    shown.fail(error.name === "AbortError" ? null : error);
  }
  running = null;
  setBusy(false);
  if (asked !== number) return;
  conversation.push(shown.message());
  pending = shown.wantsResults() ? shown : null;
  pending?.askForResults(sendResults);
  shown.entry.scrollIntoView({ block: "nearest" });
}

// Every call gets its result, an empty one where nothing was written.
function takeResults() {
  if (pending) conversation.push(...pending.results());
  pending = null;
}

function sendResults() {
  if (running) return;
  takeResults();
  answer();
}

function submit(event) {
  event.preventDefault();
  const question = element("prompt").value.trim();
  if (!question || running) return;
  element("prompt").value = "";
  takeResults();
  conversation.push({ role: "user", content: question });
  showText("user", question);
  answer();
}

function setBusy(busy) {
  element("send").disabled = busy;
  element("stop").disabled = !busy;
  element("messages").setAttribute("aria-busy", String(busy));
}

function beginAnew() {
  running?.abort();
  number += 1;
  conversation.length = 0;
  pending = null;
  element("messages").replaceChildren();
  element("prompt").focus();
}

export function startChat() {
  element("ask").addEventListener("submit", submit);
  element("prompt").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") running?.abort();
  });
  element("stop").addEventListener("click", () => running?.abort());
  element("fresh").addEventListener("click", beginAnew);
  element("tool-example").addEventListener("click", () => {
    element("tools").value = JSON.stringify([EXAMPLE_TOOL], null, 2);
    element("tools").focus();
  });
}
