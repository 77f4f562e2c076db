#include "engine/backends/gpu_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/byte_size.h"

namespace pagoda::engine {
namespace {

std::string shown(std::uint64_t bytes) { return format_byte_size(static_cast<double>(bytes)); }

Error not_there(const std::string& what, const GpuBudget& budget) {
  return {ErrorCode::kExhausted,
          fmt::format("{}, but beside weights and workspace {} of the GPU's {} are free", what,
                      shown(budget.bytes_free), shown(budget.bytes_all))};
}

}  // namespace

Result<std::uint32_t> count_blocks(const GpuBudget& budget) {
  if (budget.blocks) {
    const std::uint64_t bytes = *budget.blocks * budget.page_bytes;
    if (bytes <= budget.bytes_free) return *budget.blocks;
    return not_there(
        fmt::format("`num_gpu_blocks_override`: {} blocks take {}", *budget.blocks, shown(bytes)),
        budget);
  }
  std::uint64_t bytes = 0;
  if (budget.kv_bytes) {
    bytes = *budget.kv_bytes;
    if (bytes > budget.bytes_free) {
      return not_there(fmt::format("`kv_cache_memory_bytes`: is {}", shown(bytes)), budget);
    }
    if (bytes < budget.page_bytes) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("`kv_cache_memory_bytes`: {} hold no block, one takes {}",
                               shown(bytes), shown(budget.page_bytes))};
    }
  } else {
    const auto allowed = static_cast<std::uint64_t>(static_cast<double>(budget.bytes_all) *
                                                    budget.memory_utilization);
    const std::uint64_t taken = budget.bytes_all - budget.bytes_free;
    bytes = allowed > taken ? allowed - taken : 0;
    if (bytes < budget.page_bytes) {
      return Error{ErrorCode::kExhausted,
                   fmt::format("`gpu_memory_utilization`: {} of the GPU's {} are {}, of which "
                               "weights and workspace take {}: no block of {} is left",
                               budget.memory_utilization, shown(budget.bytes_all), shown(allowed),
                               shown(taken), shown(budget.page_bytes))};
    }
  }
  const auto own = static_cast<std::uint64_t>(static_cast<double>(bytes) * budget.share);
  const std::uint64_t blocks = own / budget.page_bytes;
  if (blocks == 0) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("of the {} for KV caches {} are the model's beside its draft model: "
                             "no block of {}",
                             shown(bytes), shown(own), shown(budget.page_bytes))};
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, UINT32_MAX - 1));
}

Status check_weights_fit(const GpuWeightsBudget& budget) {
  if (budget.packed <= budget.bytes_free) return ok_status();
  // Quantised types with a format of their own grow by less than a tenth.
  const bool grew = budget.packed > budget.in_file + budget.in_file / 4;
  return Error{ErrorCode::kExhausted,
               fmt::format("the model's weights take {} on the GPU{}, of which {} are free: use "
                           "`device=cpu`",
                           shown(budget.packed),
                           grew ? fmt::format(" ({} in the file: types that the GPU does not "
                                              "multiply by are kept there as bf16)",
                                              shown(budget.in_file))
                                : "",
                           shown(budget.bytes_free))};
}

}  // namespace pagoda::engine
