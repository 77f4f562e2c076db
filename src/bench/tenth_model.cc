#include "bench/tenth_model.h"

#include <algorithm>

#include "base/clock.h"
#include "engine/single_sequence.h"

namespace pagoda::bench {
namespace {

constexpr std::uint32_t kShare = 10;

}  // namespace

TenthModel::TenthModel(const model::Config& config, const model::Weights& weights,
                       const kernels::KernelSet& kernels, std::uint32_t threads)
    : config_(config), weights_(weights), pool_(threads) {
  config_.layers = std::max(config.layers / kShare, 1u);
  config_.vocabulary = std::max(config.vocabulary / kShare, 2u);
  config_.shared_kv_layers = 0;
  config_.attention.resize(config_.layers);
  if (!config_.rope_of_layer.empty()) config_.rope_of_layer.resize(config_.layers);
  weights_.layers.resize(config_.layers);
  weights_.embedding.rows = weights_.output.rows = config_.vocabulary;
  decoder_ = std::make_unique<model::Decoder>(config_, weights_, kernels, pool_,
                                              model::DecoderOptions{.rows_max = 16});
}

Status TenthModel::draft(std::uint32_t tokens) {
  const SteadyClock clock;
  engine::SingleRequest request;
  request.prompt = {TokenId(1)};
  request.tokens_max = tokens;
  request.context_max = tokens + 1;
  RETURN_IF_ERROR(engine::generate_single(*decoder_, request, clock));
  return ok_status();
}

}  // namespace pagoda::bench
