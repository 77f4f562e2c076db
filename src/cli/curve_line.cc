#include "cli/curve_line.h"

#include <fmt/format.h>

#include "base/byte_size.h"

namespace pagoda::cli {

std::string curve_line(const kv::CurveStats& curve) {
  const kv::PolicyRates* const own = curve.own();
  if (own == nullptr || curve.blocks_asked == 0) return "";
  if (!own->half || !own->same || !own->twice) return "";  // a sample does not tell
  return fmt::format(
      "of {} blocks of prompts asked for the cache had about {:.1f} %; half the memory would have "
      "had {:.1f} %, twice the memory {:.1f} %\n",
      format_grouped(curve.blocks_asked), 100 * *own->same, 100 * *own->half, 100 * *own->twice);
}

}  // namespace pagoda::cli
