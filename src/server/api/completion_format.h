// Formats choices as JSON for chat completions and text completions.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "server/api/choice_text.h"
#include "server/api/completion_request.h"
#include "server/json.h"

namespace pagoda::server {

// The state of one of a request's choices.
struct ChoiceState {
  std::uint32_t index = 0;
  const Prompt* prompt = nullptr;
  std::span<const engine::TokenScore> prompt_scores = {};  // where requested
  std::uint64_t seed = 0;
  bool opened = false;           // its stream has begun
  std::uint64_t characters = 0;  // characters of its tokens that were sent, for text_offset
};

class CompletionFormat {
 public:
  virtual ~CompletionFormat() = default;

  virtual std::string_view id_prefix() const = 0;
  virtual std::string_view object() const = 0;
  virtual std::string_view chunk_object() const = 0;

  // Returns the chunk that begins a choice's stream; null when there is none.
  virtual Json opening(ChoiceState& state) const = 0;
  virtual Json chunk(ChoiceState& state, const Piece& piece) const = 0;
  virtual Json whole(ChoiceState& state, const Piece& piece) const = 0;
  // Returns the members beside `choices` of a whole reply or of a stream's first chunk.
  virtual Json extras(const ChoiceState& state) const = 0;
};

// Request and tokenizer must outlive the format.
std::unique_ptr<CompletionFormat> make_chat_format(const CompletionRequest& request,
                                                   const text::Tokenizer& tokenizer);
std::unique_ptr<CompletionFormat> make_text_format(const CompletionRequest& request,
                                                   const text::Tokenizer& tokenizer);

Json tokens_json(std::span<const TokenId> tokens);
// Adds the members of an ended choice in both APIs: finish_reason, stop_reason, seed.
void add_ending(Json& choice, const ChoiceState& state, const Piece& piece);

}  // namespace pagoda::server
