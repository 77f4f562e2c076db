#include "store/key_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/file_bytes.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kFileBytesMax = 4096;

std::optional<SecretKey> from_hex(std::string_view text) {
  SecretKey key;
  if (text.size() != 2 * key.size()) return std::nullopt;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    std::uint8_t byte = 0;
    const auto [end, fault] = std::from_chars(digits, digits + 2, byte, 16);
    if (fault != std::errc{} || end != digits + 2) return std::nullopt;
    key[i] = std::byte{byte};
  }
  return key;
}

}  // namespace

Result<SecretKey> read_key_file(const std::string& path) {
  Result<FileBytes> file = read_file_bytes(path, kFileBytesMax);
  if (!file.ok()) return Error{file.error().code, "key file " + file.error().message};
  if (file.value().is_open_to_others()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("key file {}: others may read it (mode {:o}); chmod 600 it", path,
                             file.value().mode)};
  }
  std::string text = std::move(file.value().bytes);
  SecretKey key;
  if (text.size() == key.size()) {
    std::memcpy(key.data(), text.data(), key.size());
    return key;
  }
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (const std::optional<SecretKey> digits = from_hex(text)) return *digits;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("key file {}: {} bytes; it must hold 32 bytes or 64 hexadecimal digits",
                           path, text.size())};
}

}  // namespace pagoda::store
