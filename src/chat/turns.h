// Which messages of a conversation belong together, and which of them go first where the whole is
// too long for a context.
//
// A turn is what users say and all that answers it. Of the last turn a step is an assistant's
// message with the results of its calls. A call and its results are never taken apart, however far
// apart they stand, and system messages stay wherever they stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "text/chat_template.h"

namespace pagoda::chat {

struct MessageRange {
  std::size_t begin = 0;
  std::size_t end = 0;  // the message behind the last
};

enum class DropOrder : std::uint8_t {
  kOldest,  // the oldest turn goes first
  kMiddle,  // the first turn stays, and the oldest behind it goes first
};

// The turns of a conversation, which are all of its messages. Its messages have been checked: they
// are objects with roles.
std::vector<MessageRange> turns_of(const text::ChatJson& messages);

// Returns what may go, in the order in which it goes: whole turns, then steps of the last turn. The
// last turn's questions and its last step stay.
std::vector<MessageRange> droppable_ranges(const text::ChatJson& messages, DropOrder order);

// Returns the indexes of the messages that stay without the ranges: system messages within them do.
std::vector<std::uint32_t> kept_messages(const text::ChatJson& messages,
                                         std::span<const MessageRange> dropped);
text::ChatJson pick_messages(const text::ChatJson& messages, std::span<const std::uint32_t> kept);

// How many of the ranges, from the first, have to go until fits(count) is true; nothing where it is
// false even without all of them. `fits` is taken to stay true once it is. At least `least` go.
std::optional<std::size_t> fewest_dropped(std::size_t ranges, std::size_t least,
                                          const std::function<bool(std::size_t)>& fits);

// Returns the first count from `least` on with which the size of what goes passes a multiple of
// `chunk`, else `least`. As a conversation grows this stays the same for many requests, so that
// they share a prefix.
std::size_t steady_count(std::span<const std::uint64_t> range_sizes, std::size_t least,
                         std::uint64_t chunk);

// The bytes of all texts in the value.
std::uint64_t text_bytes(const text::ChatJson& value);

}  // namespace pagoda::chat
