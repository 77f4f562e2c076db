// Turns one choice's tokens into text for the client: whole characters that can no longer turn out
// to belong to a stop string, with their tokens and scores.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_event.h"
#include "server/api/completion_request.h"
#include "server/json.h"
#include "server/reply_queue.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace pagoda::server {

using OptionalScore = std::optional<engine::TokenScore>;

// A part of a choice; parts appended in order make the whole.
struct Piece {
  std::string text;  // empty in a chat whose answer is read
  // Reasoning, content and tool calls of a chat whose answer is read.
  std::vector<chat::AnswerEvent> events;
  std::vector<TokenId> tokens;
  // One per token where requested; a prompt's first token has none.
  std::vector<OptionalScore> scores;
  std::string_view finish_reason;  // empty while the choice goes on
  Json stop_reason;                // the stop string or stop token id that ended it, or null

  void append(Piece next);
};

// Returns whether the prompt shows any text. If not, the output's first space is the one that
// tokenizers put before a text.
bool has_visible_text(const Prompt& prompt, const text::Tokenizer& tokenizer, bool special);

// Returns how the tokens of the request's choices are shown. `continues` is has_visible_text() of
// the prompt. The model of the request must outlive it.
text::DetokenizerOptions detokenizer_options(const CompletionRequest& request, bool continues);

class ChoiceText {
 public:
  // `continues` is has_visible_text() of the prompt. Tokenizer and request's terms must outlive the
  // ChoiceText.
  ChoiceText(const text::Tokenizer& tokenizer, const CompletionRequest& request, bool continues);

  Piece push(const SentToken& sent);
  // Ends the choice when its sequence has ended, and returns the text that was held back.
  Piece finish(engine::FinishReason reason);
  // True after a stop string or finish(). Tokens that the engine computed meanwhile are dropped.
  bool ended() const { return ended_; }
  std::uint64_t tokens() const { return tokens_; }
  // Tokens before the first word of the answer proper, where it begins with reasoning.
  std::uint64_t reasoning_tokens() const { return reasoning_tokens_; }

 private:
  // Reads the piece's text as an answer; `last`: nothing follows it.
  void read_answer(Piece& piece, bool last);
  void count_reasoning(const Piece& piece);

  std::unique_ptr<chat::AnswerParser> answer_;
  text::Detokenizer detokenizer_;
  text::StopStrings stops_;
  SharedList<TokenId> stop_tokens_;
  std::uint32_t tokens_min_;
  bool scored_;
  std::optional<TokenId> end_token_;
  std::uint64_t tokens_ = 0;
  std::uint64_t reasoning_tokens_ = 0;
  bool past_reasoning_ = false;
  bool ended_ = false;
};

}  // namespace pagoda::server
