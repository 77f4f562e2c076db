// Two prompts beside each other: where they part, what that costs, and what the cache says of the
// second one now.
import { getText, postJson } from "./api.js";
import { element, make, pairList } from "./dom.js";
import { Reading } from "./metrics.js";
import { duration } from "./text.js";

const AROUND = 40; // tokens shown before the parting, and behind it

const bodyOf = (text) =>
  element("as-chat").checked ? { messages: [{ role: "user", content: text }] } : { prompt: text };

const tokenize = (text) => postJson("/tokenize", { ...bodyOf(text), return_token_texts: true });

function sharedLength(first, second) {
  const least = Math.min(first.length, second.length);
  for (let i = 0; i < least; ++i) {
    if (first[i] !== second[i]) return i;
  }
  return least;
}

// The end of what is shared, and how each goes on.
function partingLine(name, { token_texts: texts }, shared) {
  const line = make("div", "parting");
  line.dir = "auto";
  const rest = texts.slice(shared, shared + AROUND).join("");
  const before = texts.slice(Math.max(0, shared - AROUND), shared).join("");
  line.append(make("strong", "", name), make("span", "same", before), make("mark", "", rest || "(ends here)"));
  return line;
}

async function prefillRate() {
  try {
    return new Reading(await getText("/metrics"), 0).sum("pagoda:prefill_tokens_per_second");
  } catch {
    return undefined; // where /metrics needs an admin's key
  }
}

function costPairs(second, shared, rate) {
  // The last token of a prompt is always computed.
  const computed = second.count - Math.min(shared, second.count - 1);
  return [
    ["shared", `${shared} tokens`],
    ["second prompt", `${second.count} tokens`],
    ["to compute", `${computed} tokens`],
    ["that takes", rate > 0 ? `about ${duration((1000 * computed) / rate)}` : "unknown: nothing was computed yet"],
  ];
}

function sayParting(first, second, shared) {
  if (shared === first.count && shared === second.count) return "Both are the same prompt.";
  if (shared === 0) return "They part at the first token: nothing of the first helps the second.";
  if (shared === second.count) return "The second is the beginning of the first.";
  return `They part at token ${shared}.`;
}

const sayCached = ({ matched_tokens: matched, prompt_tokens: all }) =>
  `Now the cache has ${matched} of ${all} tokens of the second`;

async function compare(event) {
  event.preventDefault();
  const place = element("comparison");
  const [one, other] = ["first-prompt", "second-prompt"].map((id) => element(id).value);
  place.replaceChildren(make("p", "quiet", "Comparing …"));
  try {
    const [first, second, why, rate] = await Promise.all([
      tokenize(one),
      tokenize(other),
      postJson("/cache/explain", bodyOf(other)),
      prefillRate(),
    ]);
    const shared = sharedLength(first.tokens, second.tokens);
    place.replaceChildren(
      make("p", "", sayParting(first, second, shared)),
      partingLine("first", first, shared),
      partingLine("second", second, shared),
      pairList("facts", costPairs(second, shared, rate)),
      make("p", "why", `${sayCached(why)}: ${why.advice}`),
    );
  } catch (error) {
    place.replaceChildren(make("p", "error", error.message));
  }
}

export function startExplain() {
  element("compare").addEventListener("submit", compare);
}
