#include "chat/compaction.h"

#include <algorithm>
#include <vector>

#include "chat/turns.h"

namespace pagoda::chat {
namespace {

text::ChatJson request_message() { return {{"role", "user"}, {"content", kSummaryRequest}}; }

// Is the range a question for a summary with its answer, and nothing more but system messages?
bool is_summary(const text::ChatJson& messages, const MessageRange& turn) {
  const auto begin = messages.begin() + static_cast<std::ptrdiff_t>(turn.begin);
  const auto end = messages.begin() + static_cast<std::ptrdiff_t>(turn.end);
  const text::ChatJson asked = request_message();
  const auto found = std::find_if(
      begin, end, [](const text::ChatJson& message) { return message["role"] == "user"; });
  return found != end && found->value("content", text::ChatJson()) == asked["content"] &&
         end - found == 2;
}

}  // namespace

std::optional<std::size_t> kept_turns_begin(const text::ChatJson& messages,
                                            std::size_t keep_turns) {
  const std::vector<MessageRange> turns = turns_of(messages);
  if (turns.size() <= keep_turns) return std::nullopt;
  const std::size_t older = turns.size() - keep_turns;
  if (older == 1 && is_summary(messages, turns.front())) return std::nullopt;
  return turns[older - 1].end;
}

text::ChatJson summary_question(const text::ChatJson& messages, std::size_t kept_begin) {
  text::ChatJson question = text::ChatJson::array();
  question.get_ref<text::ChatJson::array_t&>().reserve(kept_begin + 1);
  for (std::size_t i = 0; i < kept_begin; ++i) question.push_back(messages[i]);
  question.push_back(request_message());
  return question;
}

text::ChatJson with_summary(const text::ChatJson& messages, std::size_t kept_begin,
                            std::string_view summary) {
  const MessageRange older = {0, kept_begin};
  const std::vector<std::uint32_t> kept = kept_messages(messages, {&older, 1});
  const auto systems = std::lower_bound(kept.begin(), kept.end(), kept_begin);
  text::ChatJson shorter = text::ChatJson::array();
  shorter.get_ref<text::ChatJson::array_t&>().reserve(kept.size() + 2);
  for (auto at = kept.begin(); at != systems; ++at) shorter.push_back(messages[*at]);
  shorter.push_back(request_message());
  shorter.push_back({{"role", "assistant"}, {"content", summary}});
  for (auto at = systems; at != kept.end(); ++at) shorter.push_back(messages[*at]);
  return shorter;
}

}  // namespace pagoda::chat
