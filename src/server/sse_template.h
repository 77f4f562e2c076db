// Most events of a stream differ in their text alone. What stands around it is written once, as
// JSON like any other, and kept as two strings: an event is then three of them put together.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pagoda::server {

class SseTemplate {
 public:
  // The text to render an event with, for from_event().
  static constexpr std::string_view kPlaceholder = "\x01\x02";

  // From an event whose text is kPlaceholder; none when that stands in it elsewhere too.
  static std::optional<SseTemplate> from_event(const std::string& event);

  // Appends the same event with this text.
  void render(std::string_view text, std::string& out) const;

 private:
  SseTemplate(std::string head, std::string tail)
      : head_(std::move(head)), tail_(std::move(tail)) {}

  std::string head_;
  std::string tail_;
};

}  // namespace pagoda::server
