#include "engine/backends/gpu_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
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

std::uint64_t workspace_row_bytes(const model::Config& config) {
  const std::uint64_t width = config.width;
  const std::uint64_t heads = config.heads;
  const model::ExpertsConfig& experts = config.experts;
  const model::LatentConfig& latent = config.latent;
  const bool has_branches = config.branch_norms != model::BranchNorms::kInput ||
                            config.residual_scale != 1 || config.has_output_scales ||
                            experts.router.experts > 0;
  std::uint64_t attention = 0;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    const model::HeadShape shape = config.heads_of(layer);
    const std::uint64_t qkv = latent.rank > 0 ? 0 : (heads + 2 * shape.kv_heads) * shape.key_dim;
    // Queries stand there twice: those at sinks are rotated otherwise.
    attention =
        std::max(attention, 4 * qkv + 4 * heads * shape.key_dim + 2 * config.mixed_width(layer));
  }
  if (latent.rank > 0) {
    const std::uint64_t queries = heads * (latent.plain_dim + config.key_dim - latent.rank);
    attention += 4 * config.key_dim + 6 * std::uint64_t{latent.query_rank} + 4 * queries +
                 heads * (2 * std::uint64_t{latent.plain_dim} + 6 * std::uint64_t{latent.rank} +
                          4 * std::uint64_t{latent.value_dim});
  }
  const std::uint64_t own_norms = experts.has_own_norms ? 4 * width : 0;
  const std::uint64_t gates =
      2 * std::uint64_t{std::max(config.hidden_width, experts.shared_width)};
  const std::uint64_t shared = experts.shared_width > 0 ? 4 * width : 0;
  const std::uint64_t chosen = experts.router.chosen * (6 * width + 2 * experts.hidden_width);
  return 6 * width + (has_branches ? 4 * width : 0) + own_norms + attention + gates + shared +
         4 * std::uint64_t{experts.router.experts} + chosen;
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
