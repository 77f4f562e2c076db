// Turns the live hit-rate curve into advice: what more memory, a smaller element or another policy
// would give, in sentences with the numbers that they are made of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kv/curve.h"
#include "server/json.h"
#include "server/served_model.h"

namespace pagoda::server {

// A block of the pool takes so many bytes when its rows are kept as `dtype`.
struct DtypeBlock {
  std::string dtype;
  std::uint64_t bytes = 0;
};

struct CacheAdvice {
  enum class Kind : std::uint8_t { kMemory, kDtype, kPolicy };

  Kind kind = Kind::kMemory;
  std::string text;             // a sentence without its full stop
  std::string name = {};        // of the dtype or the policy
  std::int64_t bytes_more = 0;  // of kMemory; below 0: so much less
  double hit_rate_now = 0;
  double hit_rate = 0;  // with the change
};

// A curve over fewer blocks than this gives no advice.
inline constexpr std::uint64_t kAdviceBlocksMin = 256;
// Advice is given for a rise of at least so much; a fall up to kAdviceFallMax counts as none.
inline constexpr double kAdviceRiseMin = 0.02;
inline constexpr double kAdviceFallMax = 0.005;

// `smaller` holds the dtypes whose blocks take less than `block_bytes`, in any order. Hit rates
// between two sizes of the curve lie on the line between them.
std::vector<CacheAdvice> advise_on_cache(const kv::CurveStats& curve, std::uint64_t block_bytes,
                                         std::span<const DtypeBlock> smaller);

// The advice for a served model as /server_info and /cache/curve have it. The dtypes are those of
// the fact `kv_block_bytes_by_dtype`.
Json describe_advice(const ServedModel& model, const kv::CurveStats& curve);

}  // namespace pagoda::server
