#include "chat/call_id.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"

namespace pagoda::chat {
namespace {

constexpr std::size_t kIdBytesMin = 8;
constexpr std::size_t kIdBytesMax = 64;
constexpr std::string_view kLetters =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool has_only(std::string_view id, std::string_view others) {
  return std::all_of(id.begin(), id.end(), [&](char c) {
    return kLetters.find(c) != std::string_view::npos || others.find(c) != std::string_view::npos;
  });
}

}  // namespace

bool is_call_id(CallIdStyle style, std::string_view id) {
  switch (style) {
    case CallIdStyle::kNine:
      return id.size() == 9 && has_only(id, "");
    case CallIdStyle::kKimi: {
      const std::size_t colon = id.rfind(':');
      return colon != std::string_view::npos && colon > 0 && colon + 1 < id.size();
    }
    case CallIdStyle::kAny:
      break;
  }
  return id.size() >= kIdBytesMin && id.size() <= kIdBytesMax && has_only(id, "_-.:");
}

std::string make_call_id(CallIdStyle style, std::uint64_t seed, std::uint32_t call,
                         std::string_view name) {
  if (style == CallIdStyle::kKimi) return fmt::format("functions.{}:{}", name, call);
  std::uint64_t bits = random_bits(seed, 0, call);
  if (style == CallIdStyle::kAny) {
    return fmt::format("call_{:016x}{:08x}", bits,
                       static_cast<std::uint32_t>(random_bits(bits, 1, 0)));
  }
  std::string id;
  for (int i = 0; i < 9; ++i) {
    id += kLetters[bits % kLetters.size()];
    bits /= kLetters.size();
  }
  return id;
}

}  // namespace pagoda::chat
