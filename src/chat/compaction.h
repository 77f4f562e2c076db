// A conversation made shorter by a summary of its older turns, which the model itself writes. The
// summary is the answer to a question that follows the older turns, so that what the cache has of
// them serves it; question and summary then stand where the older turns stood, as a turn that every
// template takes, and are summarised again with the turns behind them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "text/chat_template.h"

namespace pagoda::chat {

inline constexpr std::size_t kKeepTurnsDefault = 2;

// The user's message that asks for a summary.
inline constexpr std::string_view kSummaryRequest =
    "Summarise our conversation so far, so that it can go on from your summary alone: what was "
    "asked and answered, names, numbers, decisions, results of tools, and what is still open. "
    "Write nothing but the summary.";

// Returns the message with which the last `keep_turns` turns begin; nothing where no turn stands
// before them but a summary.
std::optional<std::size_t> kept_turns_begin(const text::ChatJson& messages, std::size_t keep_turns);

// Returns the messages whose answer is a summary of what stands before `kept_begin`.
text::ChatJson summary_question(const text::ChatJson& messages, std::size_t kept_begin);

// Returns the shorter conversation: system messages, the summary, and the turns from `kept_begin`.
text::ChatJson with_summary(const text::ChatJson& messages, std::size_t kept_begin,
                            std::string_view summary);

}  // namespace pagoda::chat
