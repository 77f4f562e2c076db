#include "loadgen/prompt.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/random.h"

namespace pagoda::loadgen {
namespace {

constexpr auto kWords = std::to_array<std::string_view>(
    {"the",   "and",  "you",    "that",   "was",   "for",   "are",   "with",  "his",    "they",
     "one",   "have", "this",   "from",   "had",   "hot",   "but",   "some",  "what",   "there",
     "can",   "out",  "other",  "were",   "all",   "your",  "when",  "use",   "word",   "how",
     "said",  "each", "she",    "which",  "their", "time",  "will",  "way",   "about",  "many",
     "then",  "them", "would",  "write",  "like",  "these", "her",   "long",  "make",   "thing",
     "see",   "him",  "two",    "has",    "look",  "more",  "day",   "could", "come",   "did",
     "sound", "most", "number", "over",   "know",  "water", "than",  "call",  "first",  "people",
     "may",   "down", "side",   "been",   "now",   "find",  "any",   "new",   "work",   "part",
     "take",  "get",  "place",  "made",   "live",  "where", "after", "back",  "little", "only",
     "round", "man",  "year",   "came",   "show",  "every", "good",  "give",  "our",    "under",
     "name",  "very", "just",   "form",   "great", "think", "say",   "help",  "low",    "line",
     "turn",  "much", "mean",   "before", "move",  "right", "boy",   "old",   "too",    "same",
     "tell",  "does", "set",    "three",  "want",  "air",   "well",  "also"});

// Escapes, and makes valid UTF-8 of what a server cut inside a character.
std::string json_text(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string text_of(const PromptPart& part) {
  return part.text.empty() ? words_of(part.symbols) : part.text;
}

std::string ids_array(const LoadPrompt& prompt, const IdRange& ids) {
  const std::uint32_t count = ids.last - ids.first + 1;
  std::string list = "[";
  for (const PromptPart& part : prompt) {
    for (const std::uint32_t symbol : part.symbols) {
      if (list.size() > 1) list += ',';
      list += std::to_string(ids.first + symbol % count);
    }
  }
  return list + "]";
}

std::string whole_text(const LoadPrompt& prompt) {
  std::string text;
  for (const PromptPart& part : prompt) {
    if (!text.empty() && part.text.empty()) text += ' ';
    text += text_of(part);
  }
  return text;
}

std::string_view role_of(const PromptPart& part) {
  if (part.is_system) return "system";
  return part.from_server ? "assistant" : "user";
}

std::string messages(const LoadPrompt& prompt) {
  std::string list = "[";
  std::string content;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    if (!content.empty()) content += ' ';
    content += text_of(prompt[i]);
    // Consecutive parts of one role are one message.
    if (i + 1 < prompt.size() && role_of(prompt[i + 1]) == role_of(prompt[i])) continue;
    if (list.size() > 1) list += ',';
    list += "{\"role\":\"" + std::string(role_of(prompt[i])) + "\",\"content\":";
    list += json_text(content) + "}";
    content.clear();
  }
  return list + "]";
}

}  // namespace

std::vector<std::uint32_t> random_symbols(std::uint64_t seed, std::uint64_t stream,
                                          std::uint32_t count) {
  std::vector<std::uint32_t> symbols(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols[i] = static_cast<std::uint32_t>(random_bits(seed, stream, i) >> 32);
  }
  return symbols;
}

std::string words_of(const std::vector<std::uint32_t>& symbols) {
  std::string text;
  for (const std::uint32_t symbol : symbols) {
    if (!text.empty()) text += ' ';
    text += kWords[symbol % kWords.size()];
  }
  return text;
}

std::string prompt_member(const LoadPrompt& prompt, PromptForm form, const IdRange& ids) {
  const bool has_text = std::any_of(prompt.begin(), prompt.end(),
                                    [](const PromptPart& part) { return !part.text.empty(); });
  if (form == PromptForm::kMessages) return "\"messages\":" + messages(prompt);
  if (form == PromptForm::kIds && !has_text) return "\"prompt\":" + ids_array(prompt, ids);
  return "\"prompt\":" + json_text(whole_text(prompt));
}

}  // namespace pagoda::loadgen
