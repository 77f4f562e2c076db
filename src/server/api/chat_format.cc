#include "server/api/completion_format.h"
#include "server/api/logprobs_json.h"

namespace pagoda::server {
namespace {

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
    return choice(state, piece, "delta", {{"content", piece.text}});
  }

  Json whole(ChoiceState& state, const Piece& piece) const override {
    return choice(state, piece, "message",
                  {{"role", "assistant"}, {"content", piece.text}, {"refusal", nullptr}});
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
