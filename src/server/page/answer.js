// An answer of the chat as it comes: reasoning folded, tool calls with a place for their results,
// what it cost, and where the tokens of its prompt came from.
import { button, element, make, pairList } from "./dom.js";
import { PromptTokens } from "./prompt_tokens.js";
import { duration } from "./text.js";

// Shows a message of the conversation and returns where its text is.
export function showText(role, text = "") {
  const entry = make("li", role);
  const place = make("div", "text", text);
  entry.append(make("span", "hidden", role === "user" ? "You: " : "Assistant: "), place);
  element("messages").append(entry);
  return { entry, place };
}

function sourcesText(bySource) {
  return Object.entries(bySource)
    .filter(([, share]) => share.tokens > 0)
    .map(([name, share]) => `${name} ${share.tokens} (${share.cached} cached)`)
    .join(", ");
}

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

export class Answer {
  constructor(body) {
    this.body = body;
    this.times = { begin: performance.now(), first: null, last: null };
    this.usage = null;
    this.why = null;
    this.reasoning = null; // <details>, once there is any
    this.calls = []; // {id, name, text, place, result}
    const { entry, place } = showText("assistant");
    this.entry = entry;
    this.text = place;
  }

  take(event) {
    const choice = event.choices[0];
    if (choice) this.takeDelta(choice.delta);
    this.usage = event.usage ?? this.usage;
    this.why = event.cache_explain ?? this.why;
  }

  takeDelta(delta) {
    const words = delta.content || delta.reasoning_content || delta.tool_calls;
    if (words || "content" in delta) this.times.last = performance.now();
    if (words) this.times.first ??= this.times.last;
    if (delta.reasoning_content) this.takeReasoning(delta.reasoning_content);
    if (delta.content) this.text.append(delta.content);
    for (const call of delta.tool_calls ?? []) this.takeCall(call);
  }

  takeReasoning(words) {
    if (!this.reasoning) {
      this.reasoning = make("details", "reasoning");
      this.reasoning.append(make("summary", "", "Reasoning"), make("div", "text"));
      this.entry.insertBefore(this.reasoning, this.text);
    }
    this.reasoning.lastChild.append(words);
  }

  // A call's first piece has its name, every later one a part of its arguments.
  takeCall({ index = this.calls.length, id, function: piece }) {
    let call = this.calls[index];
    if (!call) {
      const place = make("div", "call");
      call = { id, name: piece.name ?? "", text: "", place, result: null };
      place.append(make("strong", "", `Calls ${call.name}`), make("pre"));
      this.entry.append(place);
      this.calls[index] = call;
    }
    call.text += piece.arguments ?? "";
    call.place.querySelector("pre").textContent = pretty(call.text);
  }

  finish() {
    this.entry.append(pairList("facts", this.facts()));
    const words = this.why?.advice ?? this.why?.reason;
    if (words) {
      const { matched_tokens: matched, prompt_tokens: all } = this.why;
      this.entry.append(make("p", "why", `${matched} of ${all} prompt tokens were in the cache: ${words}`));
    }
    if (this.why?.cached_ranges) this.entry.append(new PromptTokens(this.body, this.why).details);
    this.entry.dataset.done = "true";
  }

  // Without an error somebody stopped it.
  fail(error) {
    this.entry.append(make("p", error ? "error" : "quiet", error ? error.message : "stopped"));
    this.entry.dataset.done = "error";
  }

  facts() {
    const { begin, first, last } = this.times;
    const pairs = first === null ? [] : [["TTFT", duration(Math.round(first - begin))]];
    if (!this.usage) return pairs;
    const rest = this.usage.completion_tokens - 1;
    const details = this.usage.prompt_tokens_details;
    if (first !== null && rest > 0 && last > first) {
      pairs.push(["speed", `${((1000 * rest) / (last - first)).toFixed(1)} tok/s`]);
    }
    pairs.push(["output", `${this.usage.completion_tokens} tokens`]);
    pairs.push(["prompt", `${this.usage.prompt_tokens} tokens`]);
    pairs.push(["cached", `${details.cached_tokens} tokens`]);
    pairs.push(["by source", sourcesText(details.by_source)]);
    const drafts = this.usage.speculation;
    if (drafts) pairs.push(["drafts", `${drafts.accepted_tokens} of ${drafts.draft_tokens} tokens accepted`]);
    return pairs;
  }

  // The answer as the next request repeats it: without calls that were cut off.
  message() {
    const message = { role: "assistant", content: this.text.textContent };
    if (!this.wantsResults()) return message;
    message.tool_calls = this.calls.map(({ id, name, text }) => ({
      id,
      type: "function",
      function: { name, arguments: text },
    }));
    return message;
  }

  wantsResults() {
    return this.entry.dataset.done === "true" && this.calls.length > 0;
  }

  askForResults(send) {
    for (const call of this.calls) {
      const label = make("label", "", `Result of ${call.name}`);
      call.result = make("textarea");
      call.result.rows = 2;
      label.append(call.result);
      call.place.append(label);
    }
    this.sender = button("Send results", send);
    this.calls.at(-1).place.after(this.sender); // the next stop of Tab
    this.calls[0].result.focus();
  }

  // Tool messages. What was written stays as it is.
  results() {
    this.sender.remove();
    return this.calls.map(({ id, result }) => {
      result.readOnly = true;
      return { role: "tool", tool_call_id: id, content: result.value };
    });
  }
}
