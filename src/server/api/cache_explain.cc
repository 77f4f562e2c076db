#include "server/api/cache_explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/literal.h"
#include "server/api/changing_text.h"
#include "server/api/kv_policy_fields.h"
#include "server/api/prompt_normalising.h"
#include "server/api/prompt_position.h"

namespace pagoda::server {
namespace {

using kv::EvictionCause;
using kv::Explanation;
using kv::MissReason;

// Tokens shown before the change, so that words are whole.
constexpr std::uint64_t kContextTokens = 16;

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::string text_of(std::span<const TokenId> tokens, const text::Tokenizer& tokenizer) {
  std::string text;
  for (const TokenId token : tokens) text += tokenizer.bytes_of(token);
  return text;
}

Json token_json(TokenId token, const text::Tokenizer& tokenizer) {
  return {{"id", token.value()}, {"text", tokenizer.bytes_of(token)}};
}

// Both texts around the token where the match stopped, and where they differ.
struct Parting {
  std::string asked;
  std::string stored;
  std::size_t at = 0;     // the byte where they differ, in both texts
  std::size_t bytes = 0;  // its offset in the token at which the match stopped
  // The tokens at which the match stopped spell one text: they differ, and it does not.
  bool is_respelled = false;
};

// Do the first tokens of both lists spell the same text, whatever follows it? `shared` bytes of
// both texts are the same.
bool begin_with_one_text(std::span<const TokenId> one, std::span<const TokenId> other,
                         std::size_t shared, const text::Tokenizer& tokenizer) {
  std::size_t i = 0;
  std::size_t j = 0;
  std::size_t bytes = 0;  // of one's first i tokens
  std::size_t others = 0;
  while (bytes <= shared && others <= shared) {
    if (bytes == others && bytes > 0) return true;
    if (bytes <= others) {
      if (i == one.size()) return false;
      bytes += tokenizer.bytes_of(one[i++]).size();
    } else {
      if (j == other.size()) return false;
      others += tokenizer.bytes_of(other[j++]).size();
    }
  }
  return false;
}

Parting parting_of(const Explanation& why, const Prompt& prompt, const text::Tokenizer& tokenizer) {
  const std::uint64_t stop = why.stops_at();
  const std::uint64_t first = stop - std::min(stop, kContextTokens);
  const auto tokens = std::span<const TokenId>(prompt.tokens);
  const std::string before = text_of(tokens.subspan(first, stop - first), tokenizer);
  const auto all = tokens.subspan(stop);
  const auto rest = all.first(std::min(all.size(), Explanation::kStoredTokensMax));
  const std::string asked = text_of(rest, tokenizer);
  const std::string stored = text_of(why.stored, tokenizer);
  const auto parts = std::mismatch(asked.begin(), asked.end(), stored.begin(), stored.end());
  const auto shared = static_cast<std::size_t>(parts.first - asked.begin());
  // One text may end, or leave what is looked at, within a token of the other.
  const bool is_respelled = shared == asked.size() || shared == stored.size() ||
                            begin_with_one_text(rest, why.stored, shared, tokenizer);
  return {before + asked, before + stored, before.size() + shared, shared, is_respelled};
}

bool is_gap(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Do both texts go on alike from the byte where they differ, but for white space, as far as they
// are there?
bool differ_by_space(const Parting& parting) {
  constexpr std::size_t kLettersMin = 4;
  std::string_view asked = std::string_view(parting.asked).substr(parting.at);
  std::string_view stored = std::string_view(parting.stored).substr(parting.at);
  if (asked.empty() || stored.empty()) return false;
  if (!is_gap(asked.front()) && !is_gap(stored.front())) return false;
  const auto skip = [](std::string_view& text) {
    while (!text.empty() && is_gap(text.front())) text.remove_prefix(1);
  };
  std::size_t letters = 0;
  for (skip(asked), skip(stored); !asked.empty() && !stored.empty(); skip(asked), skip(stored)) {
    if (asked.front() != stored.front()) return false;
    asked.remove_prefix(1);
    stored.remove_prefix(1);
    ++letters;
  }
  return letters >= kLettersMin;
}

// Names what a chat template did to an answer that came back in the history; empty where nothing is
// recognised.
std::string advise_answer(const Parting& parting, const std::string& where, text::Source source,
                          const chat::AnswerForm* form) {
  if (parting.is_respelled) {
    return where +
           " has the text that is in the cache, in other tokens: an answer that is sent back is "
           "tokenised again, together with what follows it";
  }
  if (source == text::Source::kAssistant && differ_by_space(parting)) {
    return where +
           " is what is in the cache with other white space: the chat template, or the client, "
           "writes the arguments of a call, or the answer, anew (send them back as they came; "
           "pagoda template check says what the template does)";
  }
  const std::string_view begin =
      form != nullptr && form->reasoning ? chat::core(form->reasoning->begin) : std::string_view();
  if (begin.empty()) return {};
  // The marker may have begun before the byte that differs.
  const auto holds = [&](std::string_view text) {
    const std::size_t from = parting.at - std::min(parting.at, begin.size());
    const std::size_t found = text.substr(from).find(begin);
    return found != std::string_view::npos && found <= begin.size();
  };
  if (holds(parting.stored) && !holds(parting.asked)) {
    return where +
           " lacks the reasoning that the model wrote here: the chat template, or the client, "
           "leaves out the reasoning of earlier turns (pagoda template check says which)";
  }
  if (holds(parting.asked) && !holds(parting.stored)) {
    return where + " has a reasoning that the model did not write: the chat template adds it";
  }
  return {};
}

// The line of a system prompt around byte `bytes` of the token; empty where others wrote it.
std::string_view system_line(const Prompt& prompt, std::uint64_t token, std::size_t bytes) {
  constexpr std::size_t kLineBytesMax = 256;
  if (prompt.rendered.empty() || token >= prompt.begins.size()) return {};
  const std::size_t at = std::min(prompt.begins[token] + bytes, prompt.rendered.size() - 1);
  if (prompt.rendered.origin_at(at).source != text::Source::kSystem) return {};
  std::size_t begin = 0;  // of the run
  for (const text::OriginText::Run& run : prompt.rendered.runs()) {
    if (run.end > at) break;
    begin = run.end;
  }
  const std::string_view before = prompt.rendered.bytes().substr(begin, at - begin);
  const std::size_t newline = before.rfind('\n');
  if (newline != std::string_view::npos) begin += newline + 1;
  const std::string_view rest = prompt.rendered.bytes().substr(begin, kLineBytesMax);
  return rest.substr(0, rest.find_first_of("\r\n"));
}

std::string advise_differs(const Explanation& why, const Prompt& prompt,
                           const text::Tokenizer& tokenizer, const ExplainTerms& terms) {
  const Parting parting = parting_of(why, prompt, tokenizer);
  const PromptPosition position = position_of(prompt, why.stops_at(), parting.bytes, tokenizer);
  const std::string about_answer = advise_answer(
      parting, describe_position(position, !prompt.rendered.empty()), position.source, terms.form);
  if (!about_answer.empty()) return about_answer;
  const ChangingText change = changing_text(parting.asked, parting.stored, parting.at);
  std::string advice =
      fmt::format("{} changes at character {}",
                  describe_position(position, !prompt.rendered.empty()), position.character);
  if (!change.kind.empty()) advice += fmt::format(": {}", change.kind);
  advice += fmt::format(" (\"{}\", in the cache \"{}\")", change.asked, change.stored);
  advice += "; only what comes before it is reused: put what changes after what stays";
  const char* const rule = rule_for(system_line(prompt, why.stops_at(), parting.bytes));
  if (rule == nullptr) return advice;
  return advice + fmt::format(", or let the server put a fixed text there: {}",
                              terms.option_name("normalise_prompts", rule));
}

std::string advise_evicted(const Explanation& why, std::int64_t now_ns) {
  if (!why.eviction) return "it was evicted: a larger cache, or \"retain\", would keep it";
  const kv::Eviction& left = *why.eviction;
  const std::string when = fmt::format(
      "{} tokens more were here until {:.1f} s ago, unused for {:.1f} s",
      why.tokens_reachable - why.stops_at(), seconds(now_ns - left.left_ns), seconds(left.idle_ns));
  switch (left.cause) {
    case EvictionCause::kReset:
      return when + ", when the cache was reset: this request fills it again";
    case EvictionCause::kQuota:
      return when + ", and made room because the tenant had more than its quota";
    case EvictionCause::kRetained:
      return when + ", and made room after the time of \"retain\" had ended: retain for longer";
    case EvictionCause::kSuperseded:
      return when +
             ", and made room because its session had gone on without them, or had ended: a "
             "session "
             "that goes back to an earlier turn computes it again";
    case EvictionCause::kRoom:
      break;
  }
  return fmt::format("{}, and made room for {}: a larger cache, or \"retain\", would keep them",
                     when, left.for_others ? "another tenant" : "a request of your own");
}

std::string advise_never_seen(const Explanation& why, std::int64_t now_ns) {
  std::string advice = why.stops_at() == 0
                           ? "nothing that begins like this was in the cache"
                           : "the cache knows the text up to here, what follows is new";
  if (why.forgotten_until_ns) {
    advice += fmt::format(" (what left more than {:.0f} s ago is forgotten)",
                          seconds(now_ns - *why.forgotten_until_ns));
  }
  return advice + ": asked again, it will be found";
}

std::string advise_whole_blocks(const Explanation& why) {
  return fmt::format(
      "a tier has every whole block of this prompt, and tiers keep no part of a block: the last {} "
      "tokens are computed, and stay in memory until they are evicted",
      why.prompt_tokens - why.stops_at());
}

std::string advise(const Explanation& why, const Prompt& prompt, const text::Tokenizer& tokenizer,
                   const ExplainTerms& terms) {
  const std::int64_t now_ns = terms.now_ns;
  const auto elsewhere = [&](const char* where) {
    return fmt::format(
        "{} tokens of this are in the cache under another {}: ask under the same one",
        why.tokens_reachable, where);
  };
  switch (why.reason) {
    case MissReason::kNone:
      return "nothing is missing: the last token is always computed";
    case MissReason::kTooShort:
      return "a prompt of one token is always computed";
    case MissReason::kSharingOff:
      return fmt::format("prefix caching is off: {} turns it on",
                         terms.option_name("enable_prefix_caching", {}));
    case MissReason::kPromptLogprobs:
      return fmt::format(
          "log-probabilities of the prompt need all of it computed: without them {} tokens would "
          "be reused",
          why.tokens_reachable);
    case MissReason::kInWork:
      return fmt::format(
          "another request is computing this: sent after its first token, {} tokens would be "
          "reused",
          why.tokens_reachable);
    case MissReason::kEvicted:
    case MissReason::kCleared:
      return advise_evicted(why, now_ns);
    case MissReason::kOtherAdapter:
      return elsewhere("adapter");
    case MissReason::kOtherFormat:
      return elsewhere("model or KV format");
    case MissReason::kOtherPolicy:
      return elsewhere("kv_policy");
    case MissReason::kOtherSalt:
      return elsewhere("cache_salt of yours");
    case MissReason::kDiffers:
      return advise_differs(why, prompt, tokenizer, terms);
    case MissReason::kNeverSeen:
      return advise_never_seen(why, now_ns);
    case MissReason::kObserved:
      return fmt::format(
          "kv_policy {} observes the attention of the prompt's last tokens: these {} are computed "
          "every time",
          terms.policy.name(), why.prompt_tokens - why.stops_at());
    case MissReason::kWholeBlocks:
      return advise_whole_blocks(why);
  }
  return {};
}

// True: public blocks of a tier might have made the match longer.
bool may_miss_public_blocks(const Explanation& why, const ExplainTerms& terms) {
  switch (why.reason) {
    case MissReason::kEvicted:
    case MissReason::kCleared:
    case MissReason::kDiffers:
    case MissReason::kNeverSeen:
      return terms.salted_beside_tiers;
    default:
      return false;
  }
}

Json stop_json(const Explanation& why, const Prompt& prompt, const text::Tokenizer& tokenizer) {
  const std::uint64_t stop = why.stops_at();
  const std::size_t bytes = why.stored.empty() ? 0 : parting_of(why, prompt, tokenizer).bytes;
  Json at = {{"token", stop}, {"asked", token_json(prompt.tokens[stop], tokenizer)}};
  at.update(position_json(position_of(prompt, stop, bytes, tokenizer)));
  return at;
}

Json eviction_json(const kv::Eviction& left, std::int64_t now_ns) {
  const bool is_reset = left.cause == EvictionCause::kReset;
  return {{"cause", kv::cause_name(left.cause)},
          {"seconds_ago", seconds(now_ns - left.left_ns)},
          {"idle_seconds", seconds(left.idle_ns)},
          {"for", is_reset ? Json(nullptr) : Json(left.for_others ? "another_tenant" : "own")}};
}

}  // namespace

Json explain_json(const Explanation& why, const Prompt& prompt, const text::Tokenizer& tokenizer,
                  const ExplainTerms& terms) {
  std::string advice = advise(why, prompt, tokenizer, terms);
  if (may_miss_public_blocks(why, terms)) {
    advice +=
        "; tiers are searched with this request's salt alone, not for what requests without "
        "one left";
  }
  const bool has_stored = !why.stored.empty();
  Json explained = {
      {"prompt_tokens", why.prompt_tokens},
      {"matched_tokens", why.stops_at()},
      {"matched_by_tier", {{"memory", why.tokens_matched}, {"tier", why.tokens_in_tier}}},
      {"reason", kv::reason_name(why.reason)},
      {"reachable_tokens", why.tokens_reachable},
      {"stopped_at", stop_json(why, prompt, tokenizer)},
      {"stored", has_stored ? token_json(why.stored.front(), tokenizer) : Json(nullptr)},
      {"evicted", why.eviction ? eviction_json(*why.eviction, terms.now_ns) : Json(nullptr)},
      {"advice", std::move(advice)}};
  if (!terms.policy.is_full()) {
    const std::uint64_t dropped =
        terms.policy.tokens_dropped({why.prompt_tokens, why.prompt_tokens}, terms.block_tokens);
    explained["kv_policy"] = kv_policy_json(terms.policy, why.prompt_tokens - dropped, dropped);
  }
  if (prompt.truncated) explained["prompt_truncated"] = truncation_json(*prompt.truncated);
  return explained;
}

}  // namespace pagoda::server
