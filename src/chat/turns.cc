#include "chat/turns.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace pagoda::chat {
namespace {

enum class Speaker : std::uint8_t { kSystem, kUser, kAssistant, kTool };

std::string_view text_member(const text::ChatJson& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

Speaker speaker_of(const text::ChatJson& message) {
  const std::string_view role = text_member(message, "role");
  if (role == "system" || role == "developer") return Speaker::kSystem;
  if (role == "user") return Speaker::kUser;
  const bool is_tool = role == "tool" || role == "function" || role == "ipython";
  return is_tool ? Speaker::kTool : Speaker::kAssistant;
}

// Finds before which messages a conversation may be cut: not between a call and its results.
class Seams {
 public:
  explicit Seams(const text::ChatJson& messages) : open_(messages.size() + 1, 0) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      add_calls(messages[i], i);
      if (speaker_of(messages[i]) != Speaker::kTool) continue;
      const std::size_t call = call_of(messages[i]);
      ++open_[call + 1];  // from the message behind the call up to the result there is no seam
      --open_[i + 1];
    }
    for (std::size_t i = 1; i < open_.size(); ++i) open_[i] += open_[i - 1];
  }

  bool is_before(std::size_t message) const { return open_[message] == 0; }

 private:
  void add_calls(const text::ChatJson& message, std::size_t index) {
    const auto calls = message.find("tool_calls");
    const bool has_calls = calls != message.end() && calls->is_array() && !calls->empty();
    const auto old_call = message.find("function_call");  // null where an SDK writes all fields
    const bool has_old_call = old_call != message.end() && old_call->is_object();
    if (!has_calls && !has_old_call) return;
    last_ = index;
    if (!has_calls) return;
    for (const text::ChatJson& call : *calls) {
      if (!call.is_object()) continue;
      const std::string_view id = text_member(call, "id");
      if (!id.empty()) by_id_.insert_or_assign(std::string(id), index);
    }
  }

  // The last call of the result's id; a result without one belongs to the last message with calls.
  std::size_t call_of(const text::ChatJson& result) const {
    const auto found = by_id_.find(text_member(result, "tool_call_id"));
    return found != by_id_.end() ? found->second : last_;
  }

  std::vector<std::int64_t> open_;  // [message]: pairs that lie on both sides of what is before it
  std::map<std::string, std::size_t, std::less<>> by_id_;
  std::size_t last_ = 0;
};

std::vector<MessageRange> ranges_between(const std::vector<std::size_t>& begins, std::size_t end) {
  std::vector<MessageRange> ranges;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    ranges.push_back({begins[i], i + 1 < begins.size() ? begins[i + 1] : end});
  }
  return ranges;
}

std::vector<MessageRange> turns_between(const text::ChatJson& messages, const Seams& seams) {
  std::vector<std::size_t> begins;
  bool is_answered = true;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Speaker speaker = speaker_of(messages[i]);
    const bool begins_turn = speaker == Speaker::kUser && is_answered && seams.is_before(i);
    if (begins.empty() || begins_turn) {
      // Messages before the first user's, a greeting for example, are a turn as well.
      begins.push_back(i);
      is_answered = false;
    }
    is_answered = is_answered || speaker == Speaker::kAssistant || speaker == Speaker::kTool;
  }
  return ranges_between(begins, messages.size());
}

// The steps of a turn that begins with a user's words; none of a turn in which users speak later,
// between a call and its result.
std::vector<MessageRange> steps_of(const text::ChatJson& messages, const MessageRange& turn,
                                   const Seams& seams) {
  std::vector<std::size_t> begins;
  for (std::size_t i = turn.begin; i < turn.end; ++i) {
    const Speaker speaker = speaker_of(messages[i]);
    if (speaker == Speaker::kUser && !begins.empty()) return {};
    if (speaker == Speaker::kAssistant && seams.is_before(i)) begins.push_back(i);
  }
  return ranges_between(begins, turn.end);
}

}  // namespace

std::vector<MessageRange> turns_of(const text::ChatJson& messages) {
  return turns_between(messages, Seams(messages));
}

std::vector<MessageRange> droppable_ranges(const text::ChatJson& messages, DropOrder order) {
  const Seams seams(messages);
  std::vector<MessageRange> ranges = turns_between(messages, seams);
  if (ranges.empty()) return {};
  const MessageRange last = ranges.back();
  ranges.pop_back();
  if (order == DropOrder::kMiddle && !ranges.empty()) ranges.erase(ranges.begin());
  std::vector<MessageRange> steps = steps_of(messages, last, seams);
  if (!steps.empty()) steps.pop_back();
  ranges.insert(ranges.end(), steps.begin(), steps.end());
  const auto stays = [&](const MessageRange& range) {
    const auto begin = messages.begin() + static_cast<std::ptrdiff_t>(range.begin);
    const auto end = messages.begin() + static_cast<std::ptrdiff_t>(range.end);
    return std::all_of(begin, end, [](const text::ChatJson& message) {
      return speaker_of(message) == Speaker::kSystem;
    });
  };
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(), stays), ranges.end());
  return ranges;
}

std::vector<std::uint32_t> kept_messages(const text::ChatJson& messages,
                                         std::span<const MessageRange> dropped) {
  std::vector<std::uint32_t> kept;
  std::size_t next = 0;  // the range that the message is in or before
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    while (next < dropped.size() && dropped[next].end <= i) ++next;
    const bool is_within = next < dropped.size() && dropped[next].begin <= i;
    if (!is_within || speaker_of(messages[i]) == Speaker::kSystem) kept.push_back(i);
  }
  return kept;
}

text::ChatJson pick_messages(const text::ChatJson& messages, std::span<const std::uint32_t> kept) {
  text::ChatJson picked = text::ChatJson::array();
  picked.get_ref<text::ChatJson::array_t&>().reserve(kept.size());
  for (const std::uint32_t index : kept) picked.push_back(messages[index]);
  return picked;
}

std::optional<std::size_t> fewest_dropped(std::size_t ranges, std::size_t least,
                                          const std::function<bool(std::size_t)>& fits) {
  if (least > ranges || !fits(ranges)) return std::nullopt;
  std::size_t low = least;
  std::size_t high = ranges;  // fits
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

std::size_t steady_count(std::span<const std::uint64_t> range_sizes, std::size_t least,
                         std::uint64_t chunk) {
  std::uint64_t size = 0;  // of the ranges before
  for (std::size_t i = 0; i < range_sizes.size(); ++i) {
    const std::uint64_t chunks = size / chunk;
    size += range_sizes[i];
    if (i + 1 >= least && size / chunk > chunks) return i + 1;
  }
  return least;
}

std::uint64_t text_bytes(const text::ChatJson& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().size();
  std::uint64_t bytes = 0;
  if (value.is_structured()) {
    for (const text::ChatJson& element : value) bytes += text_bytes(element);
  }
  return bytes;
}

}  // namespace pagoda::chat
