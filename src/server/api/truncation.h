// How a prompt that is too long for its context is made shorter, where a request asks for it:
// OpenAI's "truncation" leaves whole turns of a chat out, vLLM's "truncate_prompt_tokens" keeps the
// last tokens. What goes is a function of the request and of the context's length alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/output_length.h"
#include "server/fields.h"
#include "server/json.h"

namespace pagoda::server {

enum class TruncationType : std::uint8_t { kNone, kAuto, kMiddle };

struct Truncation {
  static constexpr std::int64_t kAllThatFit = -1;

  TruncationType type = TruncationType::kNone;
  std::optional<std::int64_t> last_tokens = {};  // to keep: at least 1, or kAllThatFit
};

// Reads "truncation", {"type": "auto"|"middle"|"none", "keep": "system"} or one of OpenAI's strings
// "auto" and "disabled", and "truncate_prompt_tokens". Throws ApiError.
Truncation read_truncation(const Fields& fields);
// Reads "truncate_prompt_tokens" alone.
std::optional<std::int64_t> read_last_tokens(const Fields& fields);

// How many tokens a prompt may have beside its output.
struct PromptRoom {
  std::uint64_t wanted = 0;  // what a prompt is made shorter to, so that the output has room, too
  std::uint64_t most = 0;    // a prompt with more is refused
};
// `gives_way`: the output's length may be cut to what the prompt leaves, as in other APIs than
// OpenAI's completions.
PromptRoom prompt_room(std::uint64_t context, std::optional<std::uint32_t> output, bool gives_way);

// Returns how many tokens a prompt keeps. Throws ApiError where they and the output exceed the
// context.
std::uint64_t tokens_to_keep(std::int64_t last_tokens, std::uint64_t context,
                             const OutputLength& length);

// Describes which messages and tokens were left out of a prompt.
struct PromptTruncation {
  // Messages in a row.
  struct Run {
    std::size_t first = 0;
    std::size_t last = 0;
    std::string from = {};  // the path of the first
    std::string to = {};    // and of the last
  };

  std::string_view type;                             // "auto", "middle", "tokens"
  std::uint64_t limit_tokens = 0;                    // what the prompt was made shorter to
  std::optional<std::uint64_t> dropped_tokens = {};  // absent: too many to be counted
  std::uint64_t dropped_messages = 0;
  std::vector<Run> dropped = {};
  std::vector<std::uint32_t> kept = {};  // the index of each message of the prompt in the whole
  std::uint64_t gap = 0;                 // the first token behind what was left out

  // Returns how many tokens of the prompt are among the first `tokens` of the whole. Where messages
  // were left out, those behind them are not counted: templates write them anew.
  std::uint64_t tokens_kept_of(std::uint64_t tokens) const;
  // Sets what follows from the messages that were kept of `messages`, of which the first `added`
  // are not the client's.
  void set_kept(std::vector<std::uint32_t> indexes, std::size_t messages, std::size_t added);
};

// The member "prompt_truncated" of a reply:
//
//   {"type": "auto", "limit_tokens": 7168, "dropped_tokens": 2104, "dropped_messages": 6,
//    "dropped": [{"from": "messages[1]", "to": "messages[6]"}]}
Json truncation_json(const PromptTruncation& truncation);

}  // namespace pagoda::server
