#include "server/api/prompt_fingerprint.h"

#include <functional>
#include <string_view>

#include "server/api/structured_fields.h"

namespace pagoda::server {
namespace {

std::uint64_t hash_text(std::string_view text) { return std::hash<std::string_view>()(text); }

std::uint64_t hash_json(const Json& value) {
  return value.is_null() ? 0 : hash_text(dump_json(value));
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  return (hash ^ value) * kOdd ^ (hash >> 29);
}

// Hashes the system messages with which a chat begins; one that comes later is a message like
// others.
std::uint64_t hash_system(const Json& messages) {
  std::uint64_t hash = 0;
  for (const Json& message : messages) {
    const auto role = message.find("role");
    if (role == message.end() || (*role != "system" && *role != "developer")) break;
    const auto content = message.find("content");
    if (content != message.end()) hash = mix(hash, hash_json(*content));
  }
  return hash;
}

// Template text counts with the message behind it; what stands behind the last message says who
// speaks next, and is of no piece.
std::vector<RequestFingerprint::Piece> pieces_of(const text::PromptTokens& tokens) {
  constexpr std::uint32_t kNoMessage = text::Origin::kNoMessage;
  std::vector<RequestFingerprint::Piece> pieces;
  std::uint64_t hash = 0;
  text::Origin last = {};  // of the last piece
  for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
    hash = mix(hash, tokens.ids[i].value() + std::uint64_t{1});
    const text::Origin origin = tokens.origins[i];
    const bool is_tool_list = origin.message == kNoMessage && origin.source == text::Source::kTool;
    if (origin.message == kNoMessage && !is_tool_list) continue;
    const bool goes_on = !pieces.empty() && origin.message == last.message;
    if (!goes_on) pieces.push_back({.index = static_cast<std::uint32_t>(pieces.size())});
    pieces.back().hash = hash;
    pieces.back().tokens_end = i + 1;
    last = origin;
  }
  return pieces;
}

}  // namespace

std::uint64_t hash_format(const Fields& body) {
  std::uint64_t hash = 0;
  for (const std::string_view name : kStructuredFields) {
    const Json* const value = body.find(name);
    if (value == nullptr || asks_for_no_structure(*value)) continue;
    hash = mix(mix(hash, hash_text(name)), hash_json(*value));
  }
  return hash;
}

RequestFingerprint fingerprint_of(const text::Conversation& conversation,
                                  const text::PromptTokens& tokens, std::uint64_t format) {
  RequestFingerprint fingerprint = {.tools = hash_json(conversation.tools),
                                    .system = hash_system(conversation.messages),
                                    .format = format,
                                    .options = hash_json(conversation.kwargs),
                                    .prompt_tokens = tokens.ids.size(),
                                    .pieces = pieces_of(tokens)};
  fingerprint.messages = fingerprint.pieces.size();
  return fingerprint;
}

}  // namespace pagoda::server
