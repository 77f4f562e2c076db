#include "base/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace pagoda {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 9> kUnits = {{
    {"b", 1.0},
    {"kb", 1e3},
    {"mb", 1e6},
    {"gb", 1e9},
    {"tb", 1e12},
    {"kib", 0x1.0p10},
    {"mib", 0x1.0p20},
    {"gib", 0x1.0p30},
    {"tib", 0x1.0p40},
}};

Error bad_size(std::string_view text) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("'{}' is not a size: expected bytes or a number with KB, MB, GB, TB, KiB, "
                      "MiB, GiB or TiB, at most 2^63 - 1 bytes",
                      text)};
}

}  // namespace

Result<std::uint64_t> parse_byte_size(std::string_view text) {
  std::uint64_t whole = 0;
  const char* const end = text.data() + text.size();
  const auto plain = std::from_chars(text.data(), end, whole);
  if (plain.ec == std::errc{} && plain.ptr == end) {
    if (whole > static_cast<std::uint64_t>(INT64_MAX)) return bad_size(text);
    return whole;
  }
  double number = 0;
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (parsed.ec != std::errc{} || text.empty() || text.front() == '-') return bad_size(text);
  std::string unit;
  for (const char* at = parsed.ptr; at != end; ++at) {
    if (*at == ' ' && unit.empty()) continue;
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
  }
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bytes = number * factor;
    if (!(bytes < 0x1.0p63) || bytes != std::floor(bytes)) return bad_size(text);
    return static_cast<std::uint64_t>(bytes);
  }
  return bad_size(text);
}

std::string format_byte_size(double bytes) {
  constexpr std::array<const char*, 7> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (bytes >= 1024.0 && unit + 1 < kNames.size()) {
    bytes /= 1024.0;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:g} B", bytes);
  return fmt::format("{:.2f} {}", bytes, kNames[unit]);
}

std::string format_grouped(std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace pagoda
