#include "cli/curve_line.h"

#include <fmt/format.h>

#include "base/byte_size.h"

namespace pagoda::cli {

std::string curve_line(const kv::CurveStats& curve) {
  const kv::PolicyRates* const own = curve.own();
  if (own == nullptr || curve.blocks_asked == 0) return "";
  if (!own->half || !own->same || !own->twice) return "";  // a sample does not tell
  return fmt::format(
      "cache hit rate about {1:.1f} % of {0} block{4} looked up; with half the memory {2:.1f} %, "
      "with twice the memory {3:.1f} %\n",
      format_grouped(curve.blocks_asked), 100 * *own->same, 100 * *own->half, 100 * *own->twice,
      curve.blocks_asked == 1 ? "" : "s");
}

}  // namespace pagoda::cli
