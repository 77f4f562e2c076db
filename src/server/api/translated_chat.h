// A request of another API as a body of /v1/chat/completions. What chats refuse, for example a
// choice of tools that needs constraints, is refused here by the same code; its error names the
// field of the API that the client speaks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/chat_prompt.h"
#include "server/api/completion_request.h"
#include "server/api/field_names.h"
#include "server/api/own_paths.h"
#include "server/json.h"
#include "server/reading_memory.h"
#include "text/memory_account.h"

namespace pagoda::server {

// An upper estimate of what a message, a part, a call or a tool takes in a chat besides its texts,
// which are moved there.
inline constexpr std::uint64_t kTranslatedBytes = 512;

// Counts the memory of a translation: bodies of many small parts become much larger chats.
class TranslationMemory {
 public:
  // Without a memory nothing is counted. It must outlive the count.
  explicit TranslationMemory(ReadingMemory* memory) : memory_(memory), counted_(memory) {}

  // Throws the memory's refusal.
  void add(std::uint64_t bytes) {
    if (!counted_.add(bytes)) throw memory_->refusal();
  }

 private:
  ReadingMemory* memory_;
  text::CountedBytes counted_;
};

struct TranslatedChat {
  Json body = Json::object();
  // The most tokens of the answer. More than the context has room for is no error, because clients
  // must often name a number without knowing the context: the answer ends where the context does.
  std::optional<std::uint32_t> tokens_max = {};
  bool takes_what_fits = false;           // tokens_max is no number of the client's own
  std::vector<FieldName> names = {};      // of what the translation wrote; their texts are static
  std::string_view too_long = {};         // begins the message about a prompt that is; static
  OwnPaths paths = {};                    // where its messages and tools are from
  std::vector<std::string> ignored = {};  // what nobody knows besides fields of `body`, for the log

  // Writes a field that the API calls `own`. Throws ApiError where the client sent the chat's, too.
  void write(std::string_view name, std::string_view own, Json value);
};

// Moves every field that is not one of the API's own from a body, an object, to the chat's, which
// is empty: what has one name and one meaning everywhere is read there (sampling, constraints,
// Pagoda's own), what is not supported is refused, and what nobody knows is named in the log.
// Throws ApiError for fields that ask for what replies of other APIs cannot hold.
void move_other_fields(Json& from, std::span<const std::string_view> own, Json& chat);

// Reads the chat. Throws ApiError and TakesLong.
CompletionRequest read_translated(TranslatedChat chat, const ServedModel& model,
                                  const ReadingTerms& terms);
// Returns how many tokens the prompt of the chat has. Throws ApiError and TakesLong.
std::uint64_t count_translated(TranslatedChat chat, const ServedModel& model,
                               const ReadingTerms& terms);

}  // namespace pagoda::server
