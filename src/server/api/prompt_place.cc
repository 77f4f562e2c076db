#include "server/api/prompt_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace pagoda::server {
namespace {

std::uint64_t count_characters(std::string_view text) {
  return static_cast<std::uint64_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

PromptPlace place_in_chat(const text::OriginText& rendered, std::size_t byte) {
  const std::size_t at = std::min(byte, rendered.size() - 1);
  const text::Origin origin = rendered.origin_at(at);
  std::size_t begin = 0;  // of the run
  for (const text::OriginText::Run& run : rendered.runs()) {
    if (run.end > at) break;
    begin = run.end;
  }
  PromptPlace place = {.source = origin.source, .message = {}};
  if (origin.message != text::Origin::kNoMessage) place.message = origin.message;
  place.character = count_characters(rendered.bytes().substr(begin, at - begin));
  return place;
}

}  // namespace

PromptPlace place_of(const Prompt& prompt, std::uint64_t token, std::uint64_t bytes,
                     const text::Tokenizer& tokenizer) {
  if (!prompt.begins.empty() && !prompt.rendered.empty()) {
    return place_in_chat(prompt.rendered, prompt.begins[token] + bytes);
  }
  // The text before it, without BOS, which nobody wrote.
  std::string before;
  bool at_start = true;
  for (std::uint64_t i = 0; i <= token; ++i) {
    if (prompt.sources[i] == text::Source::kTemplate) continue;
    const std::string_view piece = tokenizer.visible_bytes(prompt.tokens[i], true, at_start);
    before += i < token ? piece : piece.substr(0, bytes);
  }
  return {.source = prompt.sources[token], .message = {}, .character = count_characters(before)};
}

Json place_json(const PromptPlace& place) {
  return {{"source", text::source_name(place.source)},
          {"message", place.message ? Json(*place.message) : Json(nullptr)},
          {"character", place.character}};
}

std::string name_place(const PromptPlace& place, bool is_chat) {
  if (!is_chat) return "the prompt";
  if (place.source == text::Source::kSystem) return "the system prompt";
  if (!place.message) return "the chat template's own text";
  return fmt::format("messages[{}] ({})", *place.message, text::source_name(place.source));
}

}  // namespace pagoda::server
