#include "server/api/completion_format.h"
#include "server/api/logprobs_json.h"

namespace pagoda::server {
namespace {

using chat::AnswerEvent;

// The texts of one kind, in order.
std::string joined_text(const Piece& piece, AnswerEvent::Kind kind) {
  std::string text = kind == AnswerEvent::Kind::kContent ? piece.text : std::string();
  for (const AnswerEvent& event : piece.events) {
    if (event.kind == kind) text += event.text;
  }
  return text;
}

// DeepSeek's name and vLLM's.
void add_reasoning(const Piece& piece, Json& words) {
  const std::string reasoning = joined_text(piece, AnswerEvent::Kind::kReasoning);
  if (reasoning.empty()) return;
  words["reasoning_content"] = reasoning;
  words["reasoning"] = reasoning;
}

// A call's first entry has its id and name, every later one a piece of its arguments alone: clients
// append what they get.
Json call_entries(const Piece& piece, bool with_index) {
  Json entries = Json::array();
  std::uint32_t last = 0;
  for (const AnswerEvent& event : piece.events) {
    const bool begins = event.kind == AnswerEvent::Kind::kCallBegin;
    if (!begins && event.kind != AnswerEvent::Kind::kArguments) continue;
    if (begins) {
      Json entry = Json::object();
      if (with_index) entry["index"] = event.call;
      entry["id"] = event.id;
      entry["type"] = "function";
      entry["function"] = {{"name", event.text}, {"arguments", ""}};
      entries.push_back(std::move(entry));
    } else {
      if (entries.empty() || last != event.call) {
        entries.push_back({{"index", event.call}, {"function", {{"arguments", ""}}}});
      }
      auto& arguments = entries.back()["function"]["arguments"].get_ref<std::string&>();
      arguments += event.text;
    }
    last = event.call;
  }
  return entries;
}

Json delta_of(const Piece& piece) {
  Json delta = Json::object();
  add_reasoning(piece, delta);
  const std::string content = joined_text(piece, AnswerEvent::Kind::kContent);
  Json calls = call_entries(piece, true);
  if (!content.empty() || (delta.empty() && calls.empty())) delta["content"] = content;
  if (!calls.empty()) delta["tool_calls"] = std::move(calls);
  return delta;
}

Json message_of(const Piece& piece) {
  const std::string content = joined_text(piece, AnswerEvent::Kind::kContent);
  Json calls = call_entries(piece, false);
  Json message = {{"role", "assistant"}};
  message["content"] = content.empty() && !calls.empty() ? Json(nullptr) : Json(content);
  message["refusal"] = nullptr;
  add_reasoning(piece, message);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

class ChatFormat : public CompletionFormat {
 public:
  ChatFormat(const CompletionRequest& request, const text::Tokenizer& tokenizer)
      : output_(request.output), tokenizer_(tokenizer) {}

  std::string_view id_prefix() const override { return "chatcmpl-"; }
  std::string_view object() const override { return "chat.completion"; }
  std::string_view chunk_object() const override { return "chat.completion.chunk"; }

  Json opening(ChoiceState& state) const override {
    return {{"index", state.index},
            {"delta", {{"role", "assistant"}, {"content", ""}}},
            {"logprobs", nullptr},
            {"finish_reason", nullptr}};
  }

  Json chunk(ChoiceState& state, const Piece& piece) const override {
    return choice(state, piece, "delta", delta_of(piece));
  }

  Json whole(ChoiceState& state, const Piece& piece) const override {
    return choice(state, piece, "message", message_of(piece));
  }

  Json extras(const ChoiceState& state) const override {
    Json members = Json::object();
    if (output_.return_token_ids) members["prompt_token_ids"] = tokens_json(state.prompt->tokens);
    if (output_.prompt_logprobs) {
      members["prompt_logprobs"] =
          prompt_logprobs(state.prompt_scores, *output_.prompt_logprobs, tokenizer_);
    }
    return members;
  }

 private:
  Json choice(const ChoiceState& state, const Piece& piece, const char* name, Json words) const {
    Json choice = {{"index", state.index}};
    choice[name] = std::move(words);
    choice["logprobs"] =
        output_.logprobs ? chat_logprobs(piece, *output_.logprobs, tokenizer_) : Json(nullptr);
    add_ending(choice, state, piece);
    if (output_.return_token_ids) choice["token_ids"] = tokens_json(piece.tokens);
    return choice;
  }

  const OutputOptions& output_;
  const text::Tokenizer& tokenizer_;
};

}  // namespace

std::unique_ptr<CompletionFormat> make_chat_format(const CompletionRequest& request,
                                                   const text::Tokenizer& tokenizer) {
  return std::make_unique<ChatFormat>(request, tokenizer);
}

}  // namespace pagoda::server
