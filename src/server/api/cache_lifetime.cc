#include "server/api/cache_lifetime.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace pagoda::server {
namespace {

constexpr std::size_t kShownBytesMax = 32;

std::optional<double> ttl_seconds(std::string_view text) {
  constexpr std::string_view kUnits = "smhd";
  constexpr double kUnitSeconds[] = {1, 60, 3600, 86400};
  std::uint32_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || rest + 1 != end || count == 0) return std::nullopt;
  const std::size_t unit = kUnits.find(*rest);
  if (unit == std::string_view::npos) return std::nullopt;
  return count * kUnitSeconds[unit];
}

}  // namespace

CacheLifetime read_lifetime(std::string_view text, double otherwise) {
  const std::optional<double> asked = ttl_seconds(text);
  const double given = std::min(asked.value_or(otherwise), kLifetimeSecondsMax);
  if (asked && given == *asked) return {.seconds = given};
  return {.seconds = given, .clipped = std::string(text.substr(0, kShownBytesMax))};
}

}  // namespace pagoda::server
