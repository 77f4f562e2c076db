#include "server/api/completion_format.h"
#include "server/api/logprobs_json.h"

namespace pagoda::server {
namespace {

class TextFormat : public CompletionFormat {
 public:
  TextFormat(const CompletionRequest& request, const text::Tokenizer& tokenizer)
      : output_(request.output),
        tokenizer_(tokenizer),
        id_prefix_(request.embedding ? "embd-" : "cmpl-") {}

  std::string_view id_prefix() const override { return id_prefix_; }
  std::string_view object() const override { return "text_completion"; }
  std::string_view chunk_object() const override { return "text_completion"; }

  // An echoed prompt comes first; without one the first token opens the stream.
  Json opening(ChoiceState& state) const override {
    if (!output_.echo) return nullptr;
    return choice(state, echoed(state));
  }

  Json chunk(ChoiceState& state, const Piece& piece) const override {
    Json made = choice(state, piece);
    if (output_.return_token_ids) {
      if (!state.opened) made["prompt_token_ids"] = tokens_json(state.prompt->tokens);
      made["token_ids"] = tokens_json(piece.tokens);
    }
    return made;
  }

  Json whole(ChoiceState& state, const Piece& piece) const override {
    Piece all = output_.echo ? echoed(state) : Piece();
    all.append(piece);
    Json made = choice(state, all);
    if (output_.return_token_ids) {
      made["prompt_token_ids"] = tokens_json(state.prompt->tokens);
      made["token_ids"] = tokens_json(piece.tokens);
    }
    if (output_.prompt_logprobs) {
      made["prompt_logprobs"] =
          prompt_logprobs(state.prompt_scores, *output_.prompt_logprobs, tokenizer_);
    }
    return made;
  }

  Json extras(const ChoiceState& /*state*/) const override { return Json::object(); }

 private:
  Piece echoed(const ChoiceState& state) const {
    Piece piece;
    piece.text = state.prompt->text;
    piece.tokens = state.prompt->tokens;
    if (!output_.logprobs) return piece;
    piece.scores.emplace_back();
    piece.scores.insert(piece.scores.end(), state.prompt_scores.begin(), state.prompt_scores.end());
    return piece;
  }

  Json choice(ChoiceState& state, const Piece& piece) const {
    Json made = {{"index", state.index}, {"text", piece.text}};
    made["logprobs"] = output_.logprobs
                           ? text_logprobs(piece, *output_.logprobs, tokenizer_, state.characters)
                           : Json(nullptr);
    add_ending(made, state, piece);
    return made;
  }

  const OutputOptions& output_;
  const text::Tokenizer& tokenizer_;
  std::string_view id_prefix_;
};

}  // namespace

std::unique_ptr<CompletionFormat> make_text_format(const CompletionRequest& request,
                                                   const text::Tokenizer& tokenizer) {
  return std::make_unique<TextFormat>(request, tokenizer);
}

}  // namespace pagoda::server
