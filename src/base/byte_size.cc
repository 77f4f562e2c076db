#include "base/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace pagoda {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 13> kUnits = {{
    {"b", 1.0},
    {"kb", 1e3},
    {"mb", 1e6},
    {"gb", 1e9},
    {"tb", 1e12},
    {"kib", 0x1.0p10},
    {"mib", 0x1.0p20},
    {"gib", 0x1.0p30},
    {"tib", 0x1.0p40},
    {"ki", 0x1.0p10},
    {"mi", 0x1.0p20},
    {"gi", 0x1.0p30},
    {"ti", 0x1.0p40},
}};

Error bad_size(std::string_view text) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("'{}' is not a size: expected bytes or a number with KB, MB, GB, TB, KiB, "
                      "MiB, GiB, TiB or K, M, G, T (KiB, MiB, …), at most 2^63 - 1 bytes",
                      text)};
}

// A single small letter is 1000 to some programs and 1024 to others.
Error doubtful_unit(std::string_view text, std::string_view number, char unit) {
  const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(unit)));
  return {ErrorCode::kInvalidArgument,
          fmt::format("'{}' is not a size: did you mean {}{}iB or {}{}B?", text, number, letter,
                      number, letter)};
}

// The whole bytes of a number that was written in decimals: 12.3 x 10^9 is 12,300,000,000, although
// the nearest double of 12.3 is a little less.
double whole_bytes(double bytes) {
  const double nearest = std::nearbyint(bytes);
  const bool is_rounding = std::fabs(bytes - nearest) <= nearest * 0x1.0p-50;
  return is_rounding ? nearest : std::floor(bytes);
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
  std::string_view typed(parsed.ptr, end);
  while (typed.starts_with(' ')) typed.remove_prefix(1);
  std::string unit;
  for (const char letter : typed) {
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  constexpr std::string_view kLetters = "kmgt";
  if (unit.size() == 1 && kLetters.find(unit) != kLetters.npos) {
    if (typed == unit) return doubtful_unit(text, {text.data(), parsed.ptr}, unit.front());
    unit += "ib";
  }
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bytes = number * factor;
    if (!(bytes < 0x1.0p63) || (number > 0 && bytes < 1)) return bad_size(text);
    return static_cast<std::uint64_t>(whole_bytes(bytes));
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
