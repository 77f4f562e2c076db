#include "server/api/prompt_position.h"

#include <fmt/format.h>

#include <algorithm>

namespace pagoda::server {
namespace {

std::uint64_t count_characters(std::string_view text) {
  return static_cast<std::uint64_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

PromptPosition position_in_chat(const Prompt& prompt, std::size_t byte) {
  const text::OriginText& rendered = prompt.rendered;
  const std::size_t at = std::min(byte, rendered.size() - 1);
  const text::Origin origin = rendered.origin_at(at);
  std::size_t begin = 0;  // the first token of the run
  for (const text::OriginText::Run& run : rendered.runs()) {
    if (run.end > at) break;
    begin = run.end;
  }
  PromptPosition position = {.source = origin.source, .message = {}};
  if (origin.message != text::Origin::kNoMessage) {
    position.is_first = origin.message == 0;
    // A message that follows others that were left out has the index with which it was sent.
    const bool is_moved = prompt.truncated && origin.message < prompt.truncated->kept.size();
    const std::size_t message = is_moved ? prompt.truncated->kept[origin.message] : origin.message;
    if (message >= prompt.messages_added) {
      position.message = sent_message(prompt, message - prompt.messages_added);
    }
  }
  position.character = count_characters(rendered.bytes().substr(begin, at - begin));
  return position;
}

}  // namespace

PromptPosition position_of(const Prompt& prompt, std::uint64_t token, std::uint64_t bytes,
                           const text::Tokenizer& tokenizer) {
  if (!prompt.begins.empty() && !prompt.rendered.empty()) {
    return position_in_chat(prompt, prompt.begins[token] + bytes);
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

SentMessage sent_message(const Prompt& prompt, std::size_t message) {
  const std::string path = prompt.paths.first_of(message);
  const std::string last = prompt.paths.last_of(message);
  return {OwnPaths::list_index(path), path, last == path ? std::string() : last};
}

Json sent_message_json(const SentMessage& sent) {
  Json members = {{"message", sent.index ? Json(*sent.index) : Json(nullptr)},
                  {"path", sent.path.empty() ? Json(nullptr) : Json(sent.path)}};
  if (!sent.path_to.empty()) members["path_to"] = sent.path_to;
  return members;
}

Json normalised_lines_json(const Prompt& prompt) {
  Json lines = Json::array();
  for (const NormalisedText& line : prompt.normalised) {
    Json told = {{"rule", rule_name(line.rule)}};
    told.update(sent_message_json(sent_message(prompt, line.message)));
    told["served"] = line.served;
    lines.push_back(std::move(told));
  }
  return lines;
}

Json position_json(const PromptPosition& position) {
  Json members = {{"source", text::source_name(position.source)}};
  members.update(sent_message_json(position.message.value_or(SentMessage())));
  members["character"] = position.character;
  return members;
}

std::string describe_position(const PromptPosition& position, bool is_chat) {
  if (!is_chat) return "the prompt";
  if (!position.message) {
    const bool is_added = position.source == text::Source::kSystem;
    return is_added ? "the instructions for tools that the server adds"
                    : "the chat template's own text";
  }
  if (position.source == text::Source::kSystem && position.is_first) return "the system prompt";
  const SentMessage& sent = *position.message;
  const std::string to = sent.path_to.empty() ? "" : fmt::format(" to {}", sent.path_to);
  return fmt::format("{}{} ({})", sent.path, to, text::source_name(position.source));
}

}  // namespace pagoda::server
