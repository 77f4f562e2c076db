// Replies that hold a shorter conversation for the client to send from now on: the server itself
// never replaces messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "server/api/reply_writer.h"
#include "server/json.h"

namespace pagoda::server {

// The conversation as a chat's messages, and where the turns begin that stay as they are.
struct CompactedChat {
  Json messages;
  std::size_t kept_begin = 0;
  // Fills the cache with a conversation that a client is about to continue, and returns how many
  // tokens it has; 0: nothing is filled. Renders and tokenises it: call this once, on a text
  // worker. Nobody waits for the engine.
  std::function<std::uint64_t(Json messages)> fill_ahead;
};

// {"object": "chat.compaction", "messages": [...], "summary": "...", ...}
std::shared_ptr<ReplyWriter> make_chat_compaction_writer(CompactedChat chat);
// {"object": "response.compaction", "output": [...], ...}. `input` are the items that the messages
// come from; those from `first_kept` on stay as they are.
std::shared_ptr<ReplyWriter> make_response_compaction_writer(CompactedChat chat, Json input,
                                                             std::size_t first_kept);

}  // namespace pagoda::server
