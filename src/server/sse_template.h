// Most events of a stream differ in their text alone. A template keeps the JSON before and after
// the text as two strings, and render() puts the text between them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pagoda::server {

class SseTemplate {
 public:
  // Render an event with this text to make a template of it by from_event().
  static constexpr std::string_view kPlaceholder = "\x01\x02";

  // Makes a template of an event whose text is kPlaceholder. Returns nothing when the placeholder
  // also occurs elsewhere in the event.
  static std::optional<SseTemplate> from_event(const std::string& event);

  // Appends the event with this text.
  void render(std::string_view text, std::string& out) const;

 private:
  SseTemplate(std::string head, std::string tail)
      : head_(std::move(head)), tail_(std::move(tail)) {}

  std::string head_;
  std::string tail_;
};

}  // namespace pagoda::server
