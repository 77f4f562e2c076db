// Text that clients change with every request at the start of the prompt, and so lose all that the
// cache has behind it. Where the operator says so, a fixed text is put there.
//
// Every rule is a pure function of the request: what it writes never depends on another request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/json.h"

namespace pagoda::server {

enum class NormaliseRule : std::uint8_t {
  kClaudeCode,  // the pairs of "x-anthropic-billing-header: a=b; cch=…;", a hash of the request
  kDate,        // the date and time that follow "Today's date:" and the like
};

inline constexpr std::size_t kNormaliseRules = 2;
std::string_view rule_name(NormaliseRule rule);

struct NormaliseRules {
  bool claude_code = false;
  bool date = false;

  bool any() const { return claude_code || date; }
  bool has(NormaliseRule rule) const {
    return rule == NormaliseRule::kClaudeCode ? claude_code : date;
  }
};
// Reads "claude-code,date". An error names the word that is no rule.
Result<NormaliseRules> read_normalise_rules(std::string_view text);

// A value that was replaced.
struct NormalisedText {
  NormaliseRule rule;
  std::uint32_t message = 0;  // of the chat, as it was sent
  std::string served;         // the line as the model gets it, up to the end of the value
  std::string replaced;       // the client's value
};

// Replaces such values at the beginnings of lines, in the system messages with which a chat begins.
// Linear; at most kNormalisedMax are replaced, so that what is reported is bounded.
inline constexpr std::size_t kNormalisedMax = 16;
std::vector<NormalisedText> normalise_messages(Json& messages, const NormaliseRules& rules);

// The rule that would have replaced a line of this text, whichever rules are on: for advice.
const char* rule_for(std::string_view line);

}  // namespace pagoda::server
