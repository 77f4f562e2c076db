#include "replay/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/byte_size.h"

namespace pagoda::replay {
namespace {

constexpr std::uint64_t kPercentE8 = 1'000'000;
constexpr std::uint64_t kShareE8Max = 1000 * kPercentE8;
constexpr std::size_t kPercentDecimalsMax = 6;

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

Error not_a_capacity(std::string_view text) {
  return invalid(fmt::format(
      "`capacity`: '{}' is not a share of the blocks (5%, above 0 to 1000, at most {} decimals), "
      "a number of blocks (2000, from 1) or a size (16GiB)",
      text, kPercentDecimalsMax));
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<std::uint64_t> whole_number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return value;
}

// "12.5" -> 12,500,000. Exact, so that 10% of 30 blocks is 3.
std::optional<std::uint64_t> percent_e8(std::string_view text) {
  const std::size_t point = text.find('.');
  std::string decimals(point == std::string_view::npos ? "0" : text.substr(point + 1));
  if (decimals.empty() || decimals.size() > kPercentDecimalsMax) return std::nullopt;
  decimals.resize(kPercentDecimalsMax, '0');
  const std::optional<std::uint64_t> whole = whole_number(text.substr(0, point));
  const std::optional<std::uint64_t> part = whole_number(decimals);
  if (!whole || !part || *whole > kShareE8Max / kPercentE8) return std::nullopt;
  const std::uint64_t share = *whole * kPercentE8 + *part;
  if (share == 0 || share > kShareE8Max) return std::nullopt;
  return share;
}

Result<Capacity> parse_capacity(std::string_view text, std::uint64_t block_bytes) {
  Capacity capacity = {.text = std::string(text)};
  if (text.ends_with('%')) {
    const std::optional<std::uint64_t> share = percent_e8(text.substr(0, text.size() - 1));
    if (!share) return not_a_capacity(text);
    capacity.share_e8 = *share;
    return capacity;
  }
  if (const std::optional<std::uint64_t> blocks = whole_number(text)) {
    if (*blocks == 0) return not_a_capacity(text);
    capacity.blocks_set = *blocks;
    return capacity;
  }
  const Result<std::uint64_t> bytes = parse_byte_size(text);
  if (!bytes.ok()) return not_a_capacity(text);
  if (block_bytes == 0) {
    return invalid(fmt::format("`capacity`: the size '{}' needs `bytes_per_token`", text));
  }
  capacity.blocks_set = bytes.value() / block_bytes;
  if (capacity.blocks_set > 0) return capacity;
  return invalid(fmt::format("`capacity`: '{}' is less than one block of {} bytes", text,
                             format_grouped(block_bytes)));
}

}  // namespace

std::uint64_t Capacity::blocks(std::uint64_t unique_blocks) const {
  if (share_e8 == 0) return blocks_set;
  // At most 2^32 blocks x 10^9 < 2^62.
  return std::max<std::uint64_t>(unique_blocks * share_e8 / (100 * kPercentE8), 1);
}

Result<std::vector<Capacity>> parse_capacities(std::string_view list, std::uint64_t block_bytes) {
  std::vector<Capacity> capacities;
  for (bool more = true; more;) {
    const std::size_t comma = list.find(',');
    ASSIGN_OR_RETURN(Capacity capacity,
                     parse_capacity(without_blanks(list.substr(0, comma)), block_bytes));
    capacities.push_back(std::move(capacity));
    more = comma != std::string_view::npos;
    list.remove_prefix(more ? comma + 1 : list.size());
  }
  return capacities;
}

}  // namespace pagoda::replay
