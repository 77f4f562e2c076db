// One choice's tokens as the client gets them: text that is whole characters and cannot turn out
// to belong to a stop string, with the tokens and scores it is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/completion_request.h"
#include "server/json.h"
#include "server/reply_queue.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace pagoda::server {

using OptionalScore = std::optional<engine::TokenScore>;

// A part of a choice; parts appended in order are the whole.
struct Piece {
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<OptionalScore> scores;  // one per token where asked for; a prompt's first has none
  std::string_view finish_reason;     // empty while the choice goes on
  Json stop_reason;                   // the stop string or stop token id that ended it, or null

  void append(Piece next);
};

// Whether anything of the prompt shows: else the output's first space is the one that tokenizers
// put before a text.
bool has_visible_text(const Prompt& prompt, const text::Tokenizer& tokenizer, bool special);

class ChoiceText {
 public:
  // `continues`: something of the prompt shows (has_visible_text). The tokenizer must outlive this.
  ChoiceText(const text::Tokenizer& tokenizer, const CompletionRequest& request, bool continues);

  Piece push(const SentToken& sent);
  // The engine's end of the sequence: what was held back.
  Piece finish(engine::FinishReason reason);
  // After a stop string or finish(). What the engine computed meanwhile is not part of the choice.
  bool ended() const { return ended_; }
  std::uint64_t tokens() const { return tokens_; }

 private:
  text::Detokenizer detokenizer_;
  text::StopStrings stops_;
  SharedList<TokenId> stop_tokens_;
  std::uint32_t tokens_min_;
  bool scored_;
  std::optional<TokenId> end_token_;
  std::uint64_t tokens_ = 0;
  bool ended_ = false;
};

}  // namespace pagoda::server
