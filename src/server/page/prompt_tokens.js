// The tokens of an answer's prompt, coloured by where their rows of KV came from. They are asked for
// when somebody opens them.
import { postJson } from "./api.js";
import { legendEntry, make } from "./dom.js";

const SHOWN_MAX = 4000;

// Returns the tier of each token; "computed" where none had it.
function tiersOf(ranges, tokens) {
  const tiers = new Array(tokens).fill("computed");
  for (const { first, tokens: count, tier } of ranges) tiers.fill(tier, first, first + count);
  return tiers;
}

// The fields that make a prompt; others would be refused or ignored.
function promptOf(body) {
  const { messages, tools, tool_choice } = body;
  return { messages, ...(tools ? { tools, tool_choice } : {}), return_token_texts: true };
}

function tokenSpan(text, tier) {
  const span = make("span", "token", text);
  span.dataset.tier = tier;
  span.title = tier;
  return span;
}

export class PromptTokens {
  constructor(body, why) {
    this.body = body;
    this.tiers = tiersOf(why.cached_ranges, why.prompt_tokens);
    this.details = make("details", "prompt-tokens");
    this.details.append(make("summary", "", "Prompt tokens by where they came from"));
    this.details.append(this.legend());
    this.details.addEventListener("toggle", () => this.show(), { once: true });
  }

  legend() {
    const counts = new Map();
    for (const tier of this.tiers) counts.set(tier, (counts.get(tier) ?? 0) + 1);
    const list = make("ul", "legend");
    for (const [tier, count] of counts) {
      const swatch = make("span", "token swatch");
      swatch.dataset.tier = tier;
      list.append(legendEntry(swatch, `${tier}: ${count}`));
    }
    return list;
  }

  async show() {
    const place = make("div", "text tokens");
    this.details.append(place);
    try {
      const { token_texts: texts } = await postJson("/tokenize", promptOf(this.body));
      if (texts.length !== this.tiers.length) {
        place.textContent = "The server shortened this prompt: its tokens are not known here.";
        return;
      }
      place.append(...texts.slice(0, SHOWN_MAX).map((text, i) => tokenSpan(text, this.tiers[i])));
      if (texts.length > SHOWN_MAX) place.append(make("p", "quiet", `${texts.length - SHOWN_MAX} more are not shown.`));
    } catch (error) {
      place.replaceChildren(make("p", "error", error.message));
    }
  }
}
