// Finds the cached tokens that the next turn of a conversation loses: the prompt and the answer of
// a turn are in the cache, and the next prompt holds both again as the template writes them. Where
// the template writes something else, every token from there on is computed again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/derive.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::chat {

struct TurnLoss {
  unsigned turn = 0;              // the turn whose prompt loses, from 2
  std::size_t cached_tokens = 0;  // the prompt and the answer of the turn before
  std::size_t kept_tokens = 0;    // how many of them the new prompt begins with
  std::string cause = {};         // "reasoning_removed", …; empty: nothing is lost
  std::string was = {};           // the text at the first token that changed
  std::string became = {};
  std::string fix = {};

  std::size_t lost_tokens() const { return cached_tokens - kept_tokens; }
};

struct TurnScenario {
  std::string name;  // "chat", "reasoning sent back", "reasoning left out", "tools", …
  std::vector<TurnLoss> turns = {};
  std::string refusal = {};  // why the template refuses the conversation; empty: it does not
};

// The causes in words.
std::string describe_cause(const std::string& cause);

// `turns` answers are written by the form and sent back.
std::vector<TurnScenario> check_turns(const text::ChatTemplate& chat,
                                      const text::Tokenizer& tokenizer, const FoundForm& found,
                                      unsigned turns);

// The token at which tomorrow's prompt leaves today's; nothing where no date is written.
std::optional<std::size_t> find_date(const text::ChatTemplate& chat,
                                     const text::Tokenizer& tokenizer);

}  // namespace pagoda::chat
