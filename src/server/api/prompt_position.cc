#include "server/api/prompt_position.h"

#include <fmt/format.h>

#include <algorithm>

namespace pagoda::server {
namespace {

std::uint64_t count_characters(std::string_view text) {
  return static_cast<std::uint64_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

PromptPosition position_in_chat(const text::OriginText& rendered, std::size_t byte) {
  const std::size_t at = std::min(byte, rendered.size() - 1);
  const text::Origin origin = rendered.origin_at(at);
  std::size_t begin = 0;  // the first token of the run
  for (const text::OriginText::Run& run : rendered.runs()) {
    if (run.end > at) break;
    begin = run.end;
  }
  PromptPosition position = {.source = origin.source, .message = {}};
  if (origin.message != text::Origin::kNoMessage) position.message = origin.message;
  position.character = count_characters(rendered.bytes().substr(begin, at - begin));
  return position;
}

}  // namespace

PromptPosition position_of(const Prompt& prompt, std::uint64_t token, std::uint64_t bytes,
                           const text::Tokenizer& tokenizer) {
  if (!prompt.begins.empty() && !prompt.rendered.empty()) {
    PromptPosition position = position_in_chat(prompt.rendered, prompt.begins[token] + bytes);
    // A message that follows others that were left out has the index with which it was sent.
    if (prompt.truncated && position.message && *position.message < prompt.truncated->kept.size()) {
      position.message = prompt.truncated->kept[*position.message];
    }
    return position;
  }
  // The text before the token, without BOS, which nobody wrote.
  std::string before;
  bool at_start = true;
  for (std::uint64_t i = 0; i <= token; ++i) {
    if (prompt.sources[i] == text::Source::kTemplate) continue;
    const std::string_view piece = tokenizer.visible_bytes(prompt.tokens[i], true, at_start);
    before += i < token ? piece : piece.substr(0, bytes);
  }
  return {.source = prompt.sources[token], .message = {}, .character = count_characters(before)};
}

Json position_json(const PromptPosition& position) {
  return {{"source", text::source_name(position.source)},
          {"message", position.message ? Json(*position.message) : Json(nullptr)},
          {"character", position.character}};
}

std::string describe_position(const PromptPosition& position, bool is_chat) {
  if (!is_chat) return "the prompt";
  if (position.source == text::Source::kSystem) return "the system prompt";
  if (!position.message) return "the chat template's own text";
  return fmt::format("messages[{}] ({})", *position.message, text::source_name(position.source));
}

}  // namespace pagoda::server
