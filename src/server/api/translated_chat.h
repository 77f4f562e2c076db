// A request of another API as a body of /v1/chat/completions. What chats refuse, for example a
// choice of tools that needs constraints, is refused here by the same code; its error names the
// field of the API that the client speaks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "server/api/chat_prompt.h"
#include "server/api/completion_request.h"
#include "server/json.h"

namespace pagoda::server {

// A field of chats under the name that another API has for it.
struct FieldName {
  std::string_view chat;
  std::string_view own;
};

struct TranslatedChat {
  Json body = Json::object();
  // The most tokens of the answer. More than the context has room for is no error, because clients
  // must often name a number without knowing the context: the answer ends where the context does.
  std::optional<std::uint32_t> tokens_max = {};
  std::span<const FieldName> names = {};  // static
};

// Moves fields that have one name and one meaning in every API, Pagoda's own among them, from a
// body to the chat's: sampling, `stream`, `priority`, `cache_salt`, `chat_template_kwargs`.
void move_shared_fields(Json& from, Json& chat);

// Reads the chat. Throws ApiError and TakesLong.
CompletionRequest read_translated(TranslatedChat chat, const ServedModel& model,
                                  const ReadingTerms& terms);
// Returns how many tokens the prompt of the chat has. Throws ApiError and TakesLong.
std::uint64_t count_translated(TranslatedChat chat, const ServedModel& model,
                               const ReadingTerms& terms);

}  // namespace pagoda::server
