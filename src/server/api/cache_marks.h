// Marks at the ends of prefixes that a client wants kept: Anthropic's "cache_control" and OpenAI's
// "prompt_cache_breakpoint", on tools, messages and parts of their content.
//
// Translators copy marks to the chat's tools, messages and parts. They are taken out before the
// template sees them, so that a prompt is the same with them and without.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/api/cache_lifetime.h"
#include "server/fields.h"
#include "server/json.h"
#include "text/prompt_tokens.h"

namespace pagoda::server {

inline constexpr std::size_t kMarksMax = 4;

struct CacheMark {
  static constexpr std::uint32_t kTools = UINT32_MAX;
  static constexpr std::uint32_t kWholeMessage = UINT32_MAX;

  std::uint32_t message = kTools;      // the message's index, or kTools
  std::uint32_t part = kWholeMessage;  // of its content
  CacheLifetime lifetime;
  std::uint64_t tokens = 0;  // of the prompt, up to the mark; 0 until it is placed
};

// Returns the lifetime of the mark that the object carries, if it carries one. Throws ApiError.
std::optional<CacheLifetime> read_mark(const Fields& fields);
// Copies the mark that an object carries, which read_mark() has read.
void copy_mark(const Json& from, Json& to);

// Takes the marks out of tools, of which the last counts. Throws ApiError.
void take_tool_marks(Json& tools, std::vector<CacheMark>& marks);
// Takes the marks out of messages; all of them, however many there are.
void take_message_marks(Json& messages, std::vector<CacheMark>& marks);

// Keeps the last kMarksMax of the marks, which stand in the order of the messages, and returns how
// many were dropped.
std::uint64_t drop_early_marks(std::vector<CacheMark>& marks);

// Follows the marked messages to their places in a shorter chat, which has those of these indexes;
// marks on others go.
void follow_messages(std::span<const std::uint32_t> kept, std::vector<CacheMark>& marks);

// Finds the token behind which each mark stands, and sorts marks by it. A mark on a part whose text
// the template changes stands at the end of its message; one on the system prompt stands behind the
// tools, too, wherever the template shows them.
void place_marks(const text::OriginText& rendered, const text::PromptTokens& tokens,
                 const Json& messages, std::vector<CacheMark>& marks);

}  // namespace pagoda::server
