#include "model/feed_forward.h"

#include <algorithm>

#include "base/assert.h"
#include "kernels/exp.h"

namespace pagoda::model {
namespace {

// Panels of one turn of gate_and_up: gates and ups of many rows should still be in the cache when
// they are joined.
constexpr std::size_t kFewRows = 16;
constexpr std::size_t kPanelsOfManyRows = 2;

constexpr std::size_t whole_blocks(std::size_t rows) {
  constexpr std::size_t kBlock = kernels::kActivationBlock;
  return (rows + kBlock - 1) / kBlock * kBlock;
}

// Every row may have a slot of each expert it chooses, and one of the shared expert. An expert's
// slots are filled up to a whole block.
std::size_t most_slots(const Config& config, std::size_t rows) {
  const kernels::Router& router = config.experts.router;
  const std::size_t chosen = rows * router.chosen;
  const std::size_t experts = std::min<std::size_t>(router.experts, chosen);
  return whole_blocks(rows) + chosen + experts * (kernels::kActivationBlock - 1);
}

std::size_t widest_hidden(const Config& config) {
  const bool all_experts = config.has_experts(0);
  return std::max({all_experts ? 0 : config.hidden_width, config.experts.hidden_width,
                   config.experts.shared_width});
}

}  // namespace

FeedForward::FeedForward(const Config& config, const Division& division,
                         const kernels::KernelSet& kernels, ThreadPool& pool, MatmulRunner& matmuls,
                         RankExchange* exchange, std::size_t rows_max)
    : config_(config),
      kernels_(kernels),
      matmuls_(matmuls),
      division_(division),
      exchange_(exchange),
      slots_max_(most_slots(config, rows_max)) {
  const std::size_t widest = widest_hidden(config);
  gate_.resize(slots_max_, widest);
  up_.resize(slots_max_, widest);
  hidden_block_bytes_ =
      kernels::activation_bytes(kernels.numerics, widest, kernels::kActivationBlock);
  hidden_.resize(whole_blocks(slots_max_) / kernels::kActivationBlock * hidden_block_bytes_);
  const kernels::Router& router = config.experts.router;
  if (router.experts == 0) return;
  logits_.resize(rows_max, router.experts);
  shared_gates_.resize(rows_max, 1);
  routing_.assign(pool.threads(), kernels::RoutingScratch(router));
  chosen_.resize(rows_max * router.chosen);
  slot_of_.resize(rows_max * router.chosen);
  result_of_.resize(rows_max * router.chosen);
  next_slot_.resize(router.experts);
  next_result_.resize(router.experts);
  results_cut_.begins.resize(division.ranks() + 1);
  groups_.reserve(router.experts + 1);
  products_.reserve(router.experts + 1);
  gathered_.resize(kernels::activation_bytes(kernels.numerics, config.width, slots_max_));
  results_.resize(exchange == nullptr ? rows_max * (1 + router.chosen) : rows_max, config.width);
}

const std::byte* FeedForward::hidden(std::uint32_t layer, const FeedForwardWeights& network,
                                     const std::byte* x, std::size_t rows) {
  const Cut* const cut = exchange_ == nullptr ? nullptr : &division_.layer(layer).hidden;
  const Group all = {&network, x, rows, 0, cut, 0};
  gate_and_up({&all, 1});
  return hidden_.data();
}

// Groups begin at whole blocks, and rows of a group are as wide as its network.
std::byte* FeedForward::hidden_block(std::size_t slot) {
  return hidden_.data() + slot / kernels::kActivationBlock * hidden_block_bytes_;
}

// A thread computes the same outputs of both projections and joins them; a row is packed as
// activations when all of it is there.
void FeedForward::gate_and_up(std::span<const Group> groups) {
  const auto join = config_.gate == GateKind::kSwiGlu  ? kernels_.swiglu
                    : config_.gate == GateKind::kGeGlu ? kernels_.geglu
                                                       : kernels_.clamped_swiglu;
  const auto compute = [&](const Group& group, WorkRange part) {
    float* const gates = gate_.row(group.first_slot);
    float* const ups = up_.row(group.first_slot);
    matmuls_.compute({&group.network->gate, group.x, group.rows, gates, gate_.stride()}, part);
    matmuls_.compute({&group.network->up, group.x, group.rows, ups, up_.stride()}, part);
    const std::size_t begin = part.begin * kernels::kMatmulPanel;
    const std::size_t count = std::min(part.end * kernels::kMatmulPanel, hidden_of(group)) - begin;
    for (std::size_t row = 0; row < group.rows; ++row) {
      join(gates + row * gate_.stride() + begin, ups + row * up_.stride() + begin, count);
    }
  };
  matmuls_.for_items(
      groups, [](const Group& group) { return panels_of(group.network->gate.weight); },
      [&](const Group& group, WorkRange range) {
        const std::size_t together = group.rows > kFewRows ? kPanelsOfManyRows : range.end;
        for (std::size_t begin = range.begin; begin < range.end; begin += together) {
          compute(group, {begin, std::min(begin + together, range.end), range.thread});
        }
      });
  const auto pack = [&](const Group& group, WorkRange range) { pack_hidden(group, range); };
  std::size_t rows = 0;
  for (const Group& group : groups) {
    rows += group.rows;
    if (group.hidden == nullptr) continue;
    exchange_->share(*group.hidden, group.rows, gate_.row(group.first_slot), gate_.stride());
  }
  if (rows < MatmulRunner::kRowsWorthSharing) {
    for (const Group& group : groups) pack(group, {0, group.rows, 0});
  } else {
    matmuls_.for_items(
        groups, [](const Group& group) { return group.rows; }, pack);
  }
}

void FeedForward::pack_hidden(const Group& group, WorkRange range) {
  auto* const whole = reinterpret_cast<float*>(matmuls_.scratch(range.thread));
  for (std::size_t row = range.begin; row < range.end; ++row) {
    const float* values = gate_.row(group.first_slot + row);
    if (group.hidden != nullptr) {
      exchange_->read_row(row, whole);
      values = whole;
    }
    const std::size_t width = group.hidden != nullptr ? group.hidden->all() : hidden_of(group);
    kernels_.pack_activations(values, width, hidden_block(group.first_slot), row);
  }
}

void FeedForward::mix_experts(std::uint32_t layer, const LayerWeights& weights, const Inputs& x,
                              std::size_t rows, FloatRows& out) {
  route_rows(weights.experts, x.router, rows);
  gather(division_.layer(layer).hidden, weights, x, rows);
  gate_and_up(groups_);
  if (exchange_ == nullptr) {
    project_down(weights, x, rows);
  } else {
    project_down_divided(weights, x, rows);
  }
  add_up(weights, rows, out);
}

void FeedForward::project_down(const LayerWeights& weights, const Inputs& x, std::size_t rows) {
  products_.clear();
  for (const Group& group : groups_) {
    const bool is_shared = group.network == &weights.feed_forward;
    const std::size_t first = is_shared ? 0 : shared_rows_ + group.first_result;
    products_.push_back({&group.network->down, hidden_block(group.first_slot), group.rows,
                         results_.row(first), results_.stride()});
  }
  add_shared_gate(weights, x, rows);
  matmuls_.run(products_);
}

// Ranks compute some columns of the shared expert's results, which are put together first, and the
// results of their experts.
void FeedForward::project_down_divided(const LayerWeights& weights, const Inputs& x,
                                       std::size_t rows) {
  products_.clear();
  add_shared_gate(weights, x, rows);
  if (shared_rows_ > 0) {
    const Cut& cut = division_.width();
    products_.push_back({&weights.feed_forward.down, hidden_block(groups_.front().first_slot), rows,
                         exchange_->begin(cut, rows), cut.count(division_.rank())});
  }
  matmuls_.run(products_);
  if (shared_rows_ > 0) {
    exchange_->gather();
    for (std::size_t row = 0; row < rows; ++row) exchange_->read_row(row, results_.row(row));
  }
  products_.clear();
  float* const mine = exchange_->begin(results_cut_, 1);
  const std::size_t first = results_cut_.begin(division_.rank());
  for (const Group& group : groups_) {
    if (group.network == &weights.feed_forward) continue;
    products_.push_back({&group.network->down, hidden_block(group.first_slot), group.rows,
                         mine + (group.first_result * config_.width - first), config_.width});
  }
  matmuls_.run(products_);
  exchange_->gather();
}

void FeedForward::add_shared_gate(const LayerWeights& weights, const Inputs& x, std::size_t rows) {
  const Projection& gate = weights.experts.shared_gate;
  if (gate.weight.rows == 0) return;
  products_.push_back({&gate, x.shared, rows, shared_gates_.row(0), shared_gates_.stride()});
}

void FeedForward::route_rows(const ExpertWeights& weights, const std::byte* x, std::size_t rows) {
  const Product product = {&weights.router, x, rows, logits_.row(0), logits_.stride()};
  matmuls_.run({&product, 1});
  const kernels::Router& router = config_.experts.router;
  const float* const bias =
      weights.selection_bias.empty() ? nullptr : weights.selection_bias.data();
  matmuls_.for_rows(rows, [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      kernels::route(router, logits_.row(row), bias, routing_[range.thread],
                     chosen_.data() + row * router.chosen);
      if (weights.weight_scales.empty()) continue;
      for (std::size_t i = row * router.chosen; i < (row + 1) * router.chosen; ++i) {
        chosen_[i].weight *= weights.weight_scales[chosen_[i].expert];
      }
    }
  });
}

void FeedForward::gather(const Cut& hidden, const LayerWeights& weights, const Inputs& x,
                         std::size_t rows) {
  const std::size_t chosen = config_.experts.router.chosen;
  std::fill(next_slot_.begin(), next_slot_.end(), 0u);
  for (std::size_t i = 0; i < rows * chosen; ++i) ++next_slot_[chosen_[i].expert];
  groups_.clear();
  std::size_t slot = 0;
  shared_rows_ = hidden.all() > 0 ? rows : 0;
  if (shared_rows_ > 0) {
    const Cut* const cut = exchange_ == nullptr ? nullptr : &hidden;
    groups_.push_back({&weights.feed_forward, x.shared, rows, slot, cut, 0});
    slot += whole_blocks(rows);
  }
  const std::size_t first = slot;  // of the experts' own
  slot = list_experts(weights.experts, slot);
  ASSERT(slot <= whole_blocks(slots_max_), "slots were counted for the worst case");
  for (std::size_t i = 0; i < rows * chosen; ++i) {
    slot_of_[i] = next_slot_[chosen_[i].expert]++;
    result_of_[i] = next_result_[chosen_[i].expert]++;
  }
  matmuls_.for_rows(rows, [&](WorkRange range) {
    for (std::size_t i = range.begin * chosen; i < range.end * chosen; ++i) {
      if (!is_own(chosen_[i].expert)) continue;
      kernels::copy_activations(kernels_.numerics, config_.width, x.experts, i / chosen,
                                gathered_.data(), slot_of_[i] - first);
    }
  });
}

// Lists the groups of this rank's experts, from a slot on, and counts the results of all. Returns
// the slot behind them.
std::size_t FeedForward::list_experts(const ExpertWeights& weights, std::size_t slot) {
  const std::size_t first = slot;
  const std::size_t block_bytes =
      kernels::activation_bytes(kernels_.numerics, config_.width, kernels::kActivationBlock);
  std::uint32_t result = 0;
  std::size_t rank = 0;
  for (std::uint32_t expert = 0; expert < next_slot_.size(); ++expert) {
    for (; rank < division_.ranks() && division_.experts().begin(rank) <= expert; ++rank) {
      results_cut_.begins[rank] = result * config_.width;
    }
    const std::uint32_t takers = next_slot_[expert];
    next_result_[expert] = result;
    if (takers > 0 && is_own(expert)) {
      const std::byte* const own =
          gathered_.data() + (slot - first) / kernels::kActivationBlock * block_bytes;
      groups_.push_back({&weights.experts[expert], own, takers, slot, nullptr, result});
      next_slot_[expert] = static_cast<std::uint32_t>(slot);
      slot += whole_blocks(takers);
    }
    result += takers;
  }
  for (; rank <= division_.ranks(); ++rank) results_cut_.begins[rank] = result * config_.width;
  return slot;
}

void FeedForward::add_up(const LayerWeights& layer, std::size_t rows, FloatRows& out) {
  const std::size_t chosen = config_.experts.router.chosen;
  const bool is_shared = shared_rows_ > 0;
  const bool is_gated = layer.experts.shared_gate.weight.rows > 0;
  const auto norm = [&](const std::vector<float>& weight, float* row) {
    if (weight.empty()) return;
    kernels_.rms_norm(row, weight.data(), config_.norm_epsilon, config_.width, row);
  };
  matmuls_.for_rows(rows, [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      float* const sum = out.row(row);
      std::fill_n(sum, config_.width, 0.0f);
      const auto add = [&](const float* result, float weight) {
        for (std::size_t i = 0; i < config_.width; ++i) sum[i] += weight * result[i];
      };
      for (std::size_t i = row * chosen; i < (row + 1) * chosen; ++i) {
        add(result(result_of_[i]), chosen_[i].weight);
      }
      norm(layer.experts.output_norm, sum);
      if (!is_shared) continue;
      norm(layer.experts.shared_output_norm, results_.row(row));
      add(results_.row(row),
          is_gated ? 1.0f / (1.0f + kernels::exp_fixed(-*shared_gates_.row(row))) : 1.0f);
    }
  });
}

}  // namespace pagoda::model
