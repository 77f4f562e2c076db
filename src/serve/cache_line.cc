#include "serve/cache_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/byte_size.h"

namespace pagoda::serve {
namespace {

// "; blocks found in memory …", where a sample tells and something was looked up.
std::string memory_text(const kv::CurveStats& curve) {
  const kv::PolicyRates* const own = curve.own();
  if (own == nullptr || curve.blocks_asked == 0) return "";
  if (!own->half || !own->same || !own->twice) return "";
  const auto percent = [](double rate) { return fmt::format("{:.1f} %", 100 * rate); };
  const std::string same = percent(*own->same);
  const std::string half = percent(*own->half);
  const std::string twice = percent(*own->twice);
  if (half == same && twice == same) return "; half or twice the memory would have found the same";
  return fmt::format(
      "; of {} block{} looked up memory had about {}, half of it would have had {}, twice {}",
      format_grouped(curve.blocks_asked), curve.blocks_asked == 1 ? "" : "s", same, half, twice);
}

}  // namespace

std::string cache_line(const engine::Snapshot& now, const kv::CurveStats& curve) {
  if (now.prompt_tokens == 0) return "";
  const std::uint64_t loaded = std::accumulate(now.prompt_tokens_loaded.begin(),
                                               now.prompt_tokens_loaded.end(), std::uint64_t{0});
  const std::uint64_t found = now.prompt_tokens_cached;
  const double share = 100 * static_cast<double>(found) / static_cast<double>(now.prompt_tokens);
  return fmt::format(
      "of {} prompt tokens the cache had {} ({:.1f} %){}{}\n", format_grouped(now.prompt_tokens),
      format_grouped(found), share,
      loaded == 0 ? ""
                  : fmt::format(", {} of them from tiers", format_grouped(std::min(loaded, found))),
      memory_text(curve));
}

}  // namespace pagoda::serve
