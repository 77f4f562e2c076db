// The author of a byte of a prompt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pagoda::text {

// Special tokens are recognised in template text only; all other text came from a client.
enum class Source : std::uint8_t { kTemplate, kSystem, kUser, kAssistant, kTool };

inline constexpr std::size_t kSourceCount = 5;

constexpr std::string_view source_name(Source source) {
  constexpr std::array<std::string_view, kSourceCount> kNames = {"template", "system", "user",
                                                                 "assistant", "tool"};
  return kNames[static_cast<std::size_t>(source)];
}

struct Origin {
  static constexpr std::uint32_t kNoMessage = UINT32_MAX;

  Source source = Source::kTemplate;
  std::uint32_t message = kNoMessage;  // the message's index in the conversation

  bool operator==(const Origin&) const = default;
};

}  // namespace pagoda::text
