// Most events of a stream differ in their text alone. What stands around it is written once, as
// JSON like any other, and kept as two strings: an event is then three of them put together.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pagoda::server {

class EventMould {
 public:
  // The text to render an event with, for of().
  static constexpr std::string_view kMark = "\x01\x02";

  // From an event whose text is kMark; none when the mark stands in it elsewhere too.
  static std::optional<EventMould> of(const std::string& event);

  // Appends the same event with this text.
  void cast(std::string_view text, std::string& out) const;

 private:
  EventMould(std::string head, std::string tail) : head_(std::move(head)), tail_(std::move(tail)) {}

  std::string head_;
  std::string tail_;
};

}  // namespace pagoda::server
