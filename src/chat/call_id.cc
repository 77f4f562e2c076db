#include "chat/call_id.h"

#include <fmt/format.h>

#include "base/random.h"

namespace pagoda::chat {

std::string make_call_id(CallIdStyle style, std::uint64_t seed, std::uint32_t call,
                         std::string_view name) {
  if (style == CallIdStyle::kKimi) return fmt::format("functions.{}:{}", name, call);
  std::uint64_t bits = random_bits(seed, 0, call);
  if (style == CallIdStyle::kAny) {
    return fmt::format("call_{:016x}{:08x}", bits,
                       static_cast<std::uint32_t>(random_bits(bits, 1, 0)));
  }
  constexpr std::string_view kLetters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string id;
  for (int i = 0; i < 9; ++i) {
    id += kLetters[bits % kLetters.size()];
    bits /= kLetters.size();
  }
  return id;
}

}  // namespace pagoda::chat
