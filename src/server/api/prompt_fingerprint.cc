#include "server/api/prompt_fingerprint.h"

#include <functional>
#include <string_view>

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

std::uint64_t hash_system(const Json& messages) {
  std::uint64_t hash = 0;
  for (const Json& message : messages) {
    const auto role = message.find("role");
    if (role == message.end() || (*role != "system" && *role != "developer")) continue;
    const auto content = message.find("content");
    if (content != message.end()) hash = mix(hash, hash_json(*content));
  }
  return hash;
}

// Template text between messages is left out: it says which role comes next.
std::vector<RequestFingerprint::Piece> pieces_of(const text::PromptTokens& tokens) {
  std::vector<RequestFingerprint::Piece> pieces;
  for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
    const text::Origin origin = tokens.origins[i];
    const bool has_message = origin.message != text::Origin::kNoMessage;
    if (!has_message && origin.source != text::Source::kTool) continue;
    const std::uint32_t message = has_message ? origin.message : RequestFingerprint::kToolList;
    const bool goes_on = !pieces.empty() && (pieces.back().message == message ||
                                             pieces.size() == RequestFingerprint::kMessagesMax);
    if (!goes_on) pieces.push_back({.message = message});
    pieces.back().hash = mix(pieces.back().hash, tokens.ids[i].value() + 1);
    pieces.back().tokens_end = i + 1;
  }
  return pieces;
}

}  // namespace

RequestFingerprint fingerprint_of(const text::Conversation& conversation,
                                  const text::PromptTokens& tokens, const Json* format) {
  return {.tools = hash_json(conversation.tools),
          .system = hash_system(conversation.messages),
          .format = format != nullptr ? hash_json(*format) : 0,
          .options = hash_json(conversation.kwargs),
          .prompt_tokens = tokens.ids.size(),
          .pieces = pieces_of(tokens)};
}

}  // namespace pagoda::server
