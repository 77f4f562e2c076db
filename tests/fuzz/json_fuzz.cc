// Any bytes are refused as a body with a reason, or are the value that nlohmann's own parser sees;
// whatever value it is, reading a completion's fields from it ends in a request or in a refusal,
// and so does its translation from other APIs.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "chat/compaction.h"
#include "chat/turns.h"
#include "server/api/anthropic/messages_request.h"
#include "server/api/completion_fields.h"
#include "server/api/message_fields.h"
#include "server/api/ollama/ollama_request.h"
#include "server/api/responses/responses_request.h"
#include "server/api/truncation.h"
#include "server/api_error.h"
#include "server/json.h"

namespace pagoda::server {
namespace {

std::size_t depth_of(const Json& value) {
  std::size_t deepest = 0;
  if (!value.is_structured()) return 0;
  for (const Json& element : value) deepest = std::max(deepest, depth_of(element));
  return deepest + 1;
}

void check_refusal(const ApiError& error) {
  ASSERT(error.status >= 400 && error.status < 500, "the client is told");
  ASSERT(Json::accept(dump_json(error_json(error))), "in JSON, whatever it sent");
}

void read_fields(const Json& body) {
  for (const bool is_chat : {false, true}) {
    try {
      CompletionRequest request;
      request.is_chat = is_chat;
      read_shared_fields(Fields(body), engine::kSequencesPerRequestMax, request);
      ASSERT(request.engine.sampling.n >= 1, "what was not refused is within its range");
      const Truncation truncation = read_truncation(Fields(body));
      ASSERT(truncation.last_tokens != 0, "no prompt is cut to nothing");
    } catch (const ApiError& error) {
      check_refusal(error);
    }
  }
}

// Whatever goes of checked messages, their last stays, also behind a summary.
void shorten(const Json& messages) {
  for (const auto order : {chat::DropOrder::kOldest, chat::DropOrder::kMiddle}) {
    const auto ranges = chat::droppable_ranges(messages, order);
    const auto kept = chat::kept_messages(messages, ranges);
    ASSERT(!kept.empty() && kept.back() + 1 == messages.size(), "the last message stays");
  }
  const auto begin = chat::kept_turns_begin(messages, 1);
  if (!begin) return;
  ASSERT(*begin > 0 && *begin < messages.size(), "something is older, and something is kept");
  ASSERT(chat::with_summary(messages, *begin, "x").back() == messages.back(), "the end stays");
}

// Translations from Anthropic's API and from responses are chats whose messages no check refuses;
// those from Ollama's are checked as chats alone.
void translate(const Json& body) {
  constexpr std::array kTranslators = {
      anthropic::chat_of_messages, anthropic::chat_of_counted_messages,
      responses::chat_of_responses, ollama::chat_of_chat, ollama::chat_of_generate};
  for (std::size_t i = 0; i < kTranslators.size(); ++i) {
    try {
      const TranslatedChat chat = kTranslators[i](body, nullptr);
      ASSERT(chat.body["messages"].is_array(), "a chat has messages");
      ASSERT(i == 3 || chat.paths.messages.size() == chat.body["messages"].size(),
             "each is from somewhere");
      try {
        check_messages(Fields(chat.body));
        shorten(chat.body["messages"]);
        check_tools(Fields(chat.body));
      } catch (const ApiError& error) {
        // Names of tools are checked as a chat's, and are called by the client's paths then.
        const bool is_tool = error.param.starts_with("tools[");
        ASSERT(i >= 3 || is_tool || error.param == "messages", "all else is checked before");
        check_refusal(error);
      }
    } catch (const ApiError& error) {
      check_refusal(error);
    }
  }
  try {
    const std::string echo = responses::echo_of_responses(body).members;
    ASSERT(Json::accept("{" + echo + "}"), "members of an object");
  } catch (const ApiError& error) {
    check_refusal(error);
  }
}

void check(std::string_view text) {
  Json value;
  try {
    value = parse_json(text);
  } catch (const ApiError& error) {
    ASSERT(error.code == "invalid_json", "a reason for programs");
    return check_refusal(error);
  }
  const Json plain = Json::parse(text, nullptr, false);
  ASSERT(!plain.is_discarded() && plain == value, "it is the value that is there");
  ASSERT(depth_of(value) <= kJsonDepthMax, "depth is bounded");
  ASSERT(parse_json(dump_json(value)) == value, "what is written reads as the same");
  read_fields(value);
  translate(value);
}

}  // namespace
}  // namespace pagoda::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pagoda::server::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
