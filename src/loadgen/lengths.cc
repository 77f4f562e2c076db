#include "loadgen/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>

#include "base/assert.h"
#include "base/random.h"

namespace pagoda::loadgen {
namespace {

constexpr std::uint32_t kLengthMax = 1u << 24;

std::optional<std::uint32_t> parse_count(std::string_view text) {
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || count == 0 || count > kLengthMax) return std::nullopt;
  return count;
}

// Box and Muller's: two uniform numbers make a normal one.
double random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log1p(-random_unit(seed, stream, 2 * index)));
  return radius * std::cos(2 * std::numbers::pi * random_unit(seed, stream, 2 * index + 1));
}

}  // namespace

Lengths Lengths::between(std::uint32_t least, std::uint32_t most) {
  ASSERT(least > 0 && least <= most, "lengths have an order");
  Lengths made;
  made.least_ = least;
  made.most_ = most;
  return made;
}

Lengths Lengths::log_normal(double mean, double sigma, std::uint32_t least, std::uint32_t most) {
  Lengths made = between(least, most);
  made.mean_ = mean;
  made.sigma_ = sigma;
  return made;
}

Result<Lengths> Lengths::parse(const std::string& text, const std::string& field) {
  const std::size_t dash = text.find('-');
  const auto least = parse_count(std::string_view(text).substr(0, dash));
  const auto most = dash == std::string::npos ? least : parse_count(text.substr(dash + 1));
  if (least && most && *least <= *most) return between(*least, *most);
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("`{}`: \"{}\" is neither a number of tokens from 1 to {} nor two of them "
                  "with a dash between, the smaller first",
                  field, text, kLengthMax)};
}

std::uint32_t Lengths::draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) const {
  if (mean_ == 0) {
    const double unit = random_unit(seed, stream, index);
    return least_ + static_cast<std::uint32_t>(unit * (static_cast<double>(most_ - least_) + 1));
  }
  const double mu = std::log(mean_) - sigma_ * sigma_ / 2;
  const double length = std::exp(mu + sigma_ * random_normal(seed, stream, index));
  return static_cast<std::uint32_t>(
      std::clamp(std::round(length), static_cast<double>(least_), static_cast<double>(most_)));
}

std::string Lengths::text() const {
  if (mean_ != 0) {
    return fmt::format("log-normal, mean {}, sigma {}, {}-{}", mean_, sigma_, least_, most_);
  }
  return least_ == most_ ? std::to_string(least_) : fmt::format("{}-{}", least_, most_);
}

Lengths sharegpt_inputs() { return Lengths::log_normal(161, 1.2, 4, 1024); }
Lengths sharegpt_outputs() { return Lengths::log_normal(338, 0.9, 4, 2048); }

}  // namespace pagoda::loadgen
