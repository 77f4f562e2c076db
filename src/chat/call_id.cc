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

std::string nine_letters(std::uint64_t bits) {
  std::string id;
  for (int i = 0; i < 9; ++i) {
    id += kLetters[bits % kLetters.size()];
    bits /= kLetters.size();
  }
  return id;
}

// Mixes in eight bytes at a time, and the length first.
std::uint64_t digest(std::string_view text) {
  std::uint64_t state = text.size();
  for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    for (const char c : text.substr(at, sizeof word))
      word = word << 8 | static_cast<std::uint8_t>(c);
    state = random_bits(state, word, at);
  }
  return state;
}

void fit_id(text::ChatJson& object, const char* name) {
  const auto id = object.find(name);
  if (id == object.end() || !id->is_string()) return;
  const std::string& given = id->get_ref<const std::string&>();
  if (!is_call_id(CallIdStyle::kNine, given)) *id = nine_letters(digest(given));
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
  const std::uint64_t bits = random_bits(seed, 0, call);
  if (style == CallIdStyle::kAny) {
    return fmt::format("call_{:016x}{:08x}", bits,
                       static_cast<std::uint32_t>(random_bits(bits, 1, 0)));
  }
  return nine_letters(bits);
}

void fit_call_ids(CallIdStyle style, text::ChatJson& messages) {
  if (style != CallIdStyle::kNine) return;
  for (text::ChatJson& message : messages) {
    fit_id(message, "tool_call_id");
    const auto calls = message.find("tool_calls");
    if (calls == message.end() || !calls->is_array()) continue;
    for (text::ChatJson& call : *calls) {
      if (call.is_object()) fit_id(call, "id");
    }
  }
}

}  // namespace pagoda::chat
