#include "cli/token_count.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace pagoda::cli {
namespace {

constexpr std::array<std::pair<char, double>, 6> kTokenSuffixes = {
    {{'k', 1e3}, {'K', 0x1.0p10}, {'m', 1e6}, {'M', 0x1.0p20}, {'g', 1e9}, {'G', 0x1.0p30}}};

}  // namespace

std::optional<std::uint64_t> parse_token_count(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const char* const end = text.data() + text.size();
  std::uint64_t whole = 0;
  const auto plain = std::from_chars(text.data(), end, whole);
  if (plain.ec == std::errc{} && plain.ptr == end) return whole;
  for (const auto& [suffix, factor] : kTokenSuffixes) {
    if (text.back() != suffix) continue;
    double number = 0;
    const auto parsed = std::from_chars(text.data(), end - 1, number, std::chars_format::fixed);
    if (parsed.ec != std::errc{} || parsed.ptr != end - 1) return std::nullopt;
    const double tokens = number * factor;
    if (!(tokens >= 0 && tokens <= 0x1.0p53) || tokens != std::floor(tokens)) return std::nullopt;
    return static_cast<std::uint64_t>(tokens);
  }
  return std::nullopt;
}

}  // namespace pagoda::cli
