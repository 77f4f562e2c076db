#include "server/compact_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "chat/compaction.h"
#include "server/api/caller_fields.h"
#include "server/api/compaction_writer.h"
#include "server/api/message_fields.h"
#include "server/api/responses/output_items.h"
#include "server/api/responses/responses_request.h"
#include "server/api_error.h"
#include "server/completion_route.h"
#include "server/fields.h"
#include "text/strict_json.h"

namespace pagoda::server {
namespace {

std::size_t read_keep_turns(const Fields& fields) {
  if (fields.boolean("stream").value_or(false)) {
    throw ApiError(400, "stream: a compaction comes as a whole reply only", "stream");
  }
  const auto turns = fields.integer("keep_turns", 1, INT32_MAX);
  return turns ? static_cast<std::size_t>(*turns) : chat::kKeepTurnsDefault;
}

// How long a summary may be where a request does not say.
std::uint32_t summary_tokens(const HttpRequest& request, const ServedModel& model,
                             const ReadingTerms& terms) {
  std::uint64_t tokens = std::clamp<std::uint64_t>(terms.context_of(model, {}) / 8, 1, 2048);
  const std::uint64_t most = request.caller.output_tokens;
  if (most > 0) tokens = std::min(tokens, most);
  return static_cast<std::uint32_t>(tokens);
}

void erase_members(Json& body, std::span<const char* const> names) {
  for (const char* const name : names) body.erase(name);
}

// These fields belong to the answer that a client wants, and not to a summary or a prefix.
constexpr std::array kOfTheAnswer = {"keep_turns",
                                     "stream",
                                     "stream_options",
                                     "n",
                                     "logprobs",
                                     "top_logprobs",
                                     "prompt_logprobs",
                                     "response_format",
                                     "stop",
                                     "ignore_eos",
                                     "stop_token_ids",
                                     "structured_outputs",
                                     "guided_json",
                                     "guided_regex",
                                     "guided_choice",
                                     "guided_grammar",
                                     "grammar",
                                     "json_schema",
                                     "continue_final_message",
                                     "prompt_cache_options",
                                     "min_tokens",
                                     "logit_bias",
                                     "prediction",
                                     "kv_transfer_params",
                                     "bootstrap_host",
                                     "bootstrap_port",
                                     "bootstrap_room"};

// The chat whose answer is the summary of a conversation: what `chat` has besides its messages, and
// `messages`. Where even that is too long, the first turn, which may be an earlier summary, and the
// newest ones count most.
Json question_of(const Json& chat, Json messages) {
  // Fields go to the end of the container: an insertion would compare each with all before it.
  Json question = Json::object();
  Json::object_t::Container& fields = question.get_ref<Json::object_t&>();
  for (const auto& [name, value] : chat.items()) {
    const bool is_of_answer =
        std::find(kOfTheAnswer.begin(), kOfTheAnswer.end(), name) != kOfTheAnswer.end();
    if (!is_of_answer && name != "messages") fields.emplace_back(name, value);
  }
  question["messages"] = std::move(messages);
  question["tool_choice"] = "none";
  if (!question.contains("temperature")) question["temperature"] = 0;
  const bool cuts = question.contains("truncation") || question.contains("truncate_prompt_tokens");
  if (!cuts) question["truncation"] = "middle";
  return question;
}

// Takes no replies; its memory is counted until the engine lets go of it.
class NobodyWaits final : public engine::ReplySink {
 public:
  explicit NobodyWaits(ByteBudget::Hold memory) : memory_(std::move(memory)) {}

  void on_token(std::uint32_t /*sequence*/, const engine::OutputToken& /*chosen*/) override {}
  void on_finish(std::uint32_t /*sequence*/, engine::FinishReason /*reason*/,
                 const engine::SequenceRecord& /*record*/,
                 const std::string& /*message*/) override {}

 private:
  ByteBudget::Hold memory_;
};

// Computes the prompt of a chat for the request that will begin with it. A chat that cannot be
// filled, for want of memory for example, is not.
std::uint64_t fill(Json chat, const HttpRequest& caller, const ServerState& state) {
  const ServedModel& model = state.model();
  CompletionRequest ahead;
  try {
    ReadingMemory memory(&state.request_memory(), &state.stops());
    ahead = read_chat_request(std::move(chat), model, reading_terms(caller, state, memory));
    bind_to_caller(ahead, caller.caller);
  } catch (const ApiError&) {
    return 0;
  }
  if (ahead.engine.session.empty()) set_session(caller.session, ahead);
  ByteBudget::Hold memory(state.request_memory());
  if (!memory.resize(ahead.memory_bytes)) return 0;
  Prompt& prompt = ahead.prompts.front();
  const std::uint64_t tokens = prompt.tokens.size();
  ahead.engine.prompt = std::move(prompt.tokens);
  ahead.engine.first_turn_tokens = prompt.first_turn_tokens;
  const auto id = model.engine.submit(std::move(ahead.engine),
                                      std::make_shared<NobodyWaits>(std::move(memory)));
  return id.ok() ? tokens : 0;
}

// `chat` has what the next request of the client has besides its messages.
CompactedChat compacted(Json chat, Json messages, std::size_t kept_begin,
                        const HttpRequest& request, const ServerState& state) {
  erase_members(chat, kOfTheAnswer);
  erase_members(chat, std::array{"max_completion_tokens", "cache_explain", "diagnostics", "retain",
                                 "truncation", "truncate_prompt_tokens"});
  chat["max_tokens"] = 0;
  chat["add_generation_prompt"] = false;
  HttpRequest caller = {.method = {}, .path = {}};
  caller.caller = request.caller;
  caller.session = request.session;
  return {.messages = std::move(messages),
          .kept_begin = kept_begin,
          .fill_ahead = [chat = std::move(chat), caller = std::move(caller),
                         &state](Json next) mutable {
            chat["messages"] = std::move(next);
            return fill(std::move(chat), caller, state);
          }};
}

// A request for a summary, or the reply where there is nothing to summarise.
struct CompactionTask {
  CompletionRequest asked = {};
  std::optional<HttpReply> reply = {};
};

Routed complete_compaction(CompactionTask task, const HttpRequest& request,
                           const ServerState& state) {
  if (task.reply) return *std::move(task.reply);
  task.asked.output.stream = false;
  return complete(std::move(task.asked), request, state);
}

// Counts what the question for a summary copies of the chat.
void count_question(const Json& chat, const Json& messages, ReadingMemory& memory) {
  if (!memory.take(text::json_bytes(chat) + text::json_bytes(messages))) throw memory.refusal();
}

CompactionTask read_chat_compaction(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  ReadingMemory memory = reading_memory(request, state);
  Json body = read_body(request, model, memory);
  const Fields fields(body);
  const std::size_t keep_turns = read_keep_turns(fields);
  check_messages(fields);
  Json messages = std::exchange(body["messages"], nullptr);
  const auto kept_begin = chat::kept_turns_begin(messages, keep_turns);
  CompactionTask task;
  if (!kept_begin) {
    task.reply = json_reply({{"object", "chat.compaction"},
                             {"created", std::time(nullptr)},
                             {"model", model.name()},
                             {"messages", std::move(messages)},
                             {"summary", ""},
                             {"usage", Usage().to_json()}});
    return task;
  }
  count_question(body, messages, memory);
  const ReadingTerms terms = reading_terms(request, state, memory);
  Json question = question_of(body, chat::summary_question(messages, *kept_begin));
  const bool has_length =
      question.contains("max_tokens") || question.contains("max_completion_tokens");
  if (!has_length) question["max_tokens"] = summary_tokens(request, model, terms);
  task.asked = read_chat_request(std::move(question), model, terms);
  // The messages are kept, copied for the fill and for the reply, and written as its text.
  task.asked.memory_bytes += text::json_bytes(body) + 4 * text::json_bytes(messages);
  task.asked.writer = make_chat_compaction_writer(
      compacted(std::move(body), std::move(messages), *kept_begin, request, state));
  return task;
}

// The item that a message of the chat comes from: "input[12]". Messages of users come from items.
std::size_t item_of(const MessagePlace& place) {
  return OwnPaths::list_index(place.path).value_or(0);
}

HttpReply uncompacted_response(Json input, const ServedModel& model) {
  Json reply = {{"id", fmt::format("resp_{:016x}", fresh_seed())},
                {"object", "response.compaction"},
                {"created_at", std::time(nullptr)},
                {"model", model.name()}};
  reply["output"] = std::move(input);
  reply["usage"] = {{"input_tokens", 0}, {"output_tokens", 0}, {"total_tokens", 0}};
  return json_reply(reply);
}

// Copies the items of a conversation, which become messages and stay items in the reply.
Json copy_input(const Json& body, ReadingMemory& memory) {
  const auto found = body.find("input");
  if (found == body.end()) return nullptr;
  if (!memory.take(text::json_bytes(*found))) throw memory.refusal();
  return *found;
}

CompactionTask read_response_compaction(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  ReadingMemory memory = reading_memory(request, state);
  Json body = read_body(request, model, memory);
  const std::size_t keep_turns = read_keep_turns(Fields(body));
  Json input = copy_input(body, memory);
  TranslatedChat chat = responses::chat_of_responses(std::move(body), &memory);
  TranslationMemory items(&memory);
  input = responses::as_output_items(std::move(input), items);
  Json messages = std::exchange(chat.body["messages"], nullptr);
  const auto kept_begin = chat::kept_turns_begin(messages, keep_turns);
  CompactionTask task;
  if (!kept_begin) {
    task.reply = uncompacted_response(std::move(input), model);
    return task;
  }
  count_question(chat.body, messages, memory);
  const ReadingTerms terms = reading_terms(request, state, memory);
  const std::size_t first_kept = item_of(chat.paths.messages[*kept_begin]);
  // Messages are kept and copied for the fill; items are kept, copied and written for the reply.
  const std::uint64_t bytes =
      text::json_bytes(chat.body) + 2 * text::json_bytes(messages) + 3 * text::json_bytes(input);
  Json question = question_of(chat.body, chat::summary_question(messages, *kept_begin));
  CompactedChat kept = compacted(std::exchange(chat.body, std::move(question)), std::move(messages),
                                 *kept_begin, request, state);
  chat.tokens_max = chat.tokens_max.value_or(summary_tokens(request, model, terms));
  task.asked = read_translated(std::move(chat), model, terms);
  task.asked.memory_bytes += bytes;
  task.asked.writer =
      make_response_compaction_writer(std::move(kept), std::move(input), first_kept);
  return task;
}

}  // namespace

Routed compact_chat(const HttpRequest& request, const ServerState& state) {
  return complete_compaction(read_chat_compaction(request, state), request, state);
}

Routed compact_response(const HttpRequest& request, const ServerState& state) {
  return complete_compaction(read_response_compaction(request, state), request, state);
}

}  // namespace pagoda::server
