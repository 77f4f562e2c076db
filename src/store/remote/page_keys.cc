#include "store/remote/page_keys.h"

#include <fmt/format.h>

#include <span>

namespace pagoda::store {
namespace {

void append_hex(std::span<const std::byte> bytes, std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte) >> 4];
    text += kDigits[std::to_integer<std::size_t>(byte) & 15];
  }
}

}  // namespace

std::string page_key(const kv::PageKey& key, KeyForm form) {
  const bool tagged = form == KeyForm::kTagged;
  std::string text = tagged ? "pagoda1:{" : "pagoda1:";
  append_hex(key.space.digest, text);
  text += ':';
  append_hex(key.hash.digest, text);
  text += fmt::format(":{}", key.group);
  if (tagged) text += '}';
  return text;
}

std::string part_key(std::string_view page_key, std::size_t part, std::size_t part_bytes) {
  return part == 0 ? std::string(page_key) : fmt::format("{}.{}x{}", page_key, part, part_bytes);
}

std::string_view page_of_key(std::string_view key) { return key.substr(0, key.find('.')); }

bool is_part_key(std::string_view key) { return key.find('.') != std::string_view::npos; }

std::string generation_key(const kv::OwnerTag& owner) {
  std::string text = "pagoda1:generation:";
  append_hex(owner.bytes, text);
  return text;
}

}  // namespace pagoda::store
