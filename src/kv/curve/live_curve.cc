#include "kv/curve/live_curve.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {
namespace {

constexpr std::array<double, CurveStats::kPoints> kSizes = {
    1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 3.0 / 4, 1, 1.5, 2, 3, 4, 8, 16};

std::size_t index_of(const EvictionPolicy& policy) {
  const auto policies = eviction_policies();
  return static_cast<std::size_t>(std::find(policies.begin(), policies.end(), &policy) -
                                  policies.begin());
}

}  // namespace

LiveCurve::LiveCurve(const LiveCurveOptions& options)
    : options_(options),
      curve_(options.curve),
      scales_{make_scale(0.5), make_scale(1), make_scale(2)} {}

// Shadows of all sizes have the same number of blocks: the smaller the cache, the larger the share
// that is sampled.
LiveCurve::Scale LiveCurve::make_scale(double size) const {
  Scale scale;
  scale.size = size;
  const std::uint64_t nodes = nodes_at(size);
  const std::uint64_t blocks = std::min<std::uint64_t>(nodes, options_.shadow_blocks);
  if (blocks < nodes) {
    scale.rate = static_cast<double>(blocks) / static_cast<double>(nodes);
    scale.threshold = static_cast<std::uint64_t>(scale.rate * static_cast<double>(UINT64_MAX));
  }
  const auto policies = eviction_policies();
  scale.shadows.reserve(policies.size());
  for (const EvictionPolicy* const policy : policies) {
    scale.shadows.emplace_back(*policy, static_cast<std::uint32_t>(blocks));
  }
  scale.found.assign(policies.size(), 0);
  scale.sample.reserve(blocks);
  return scale;
}

void LiveCurve::opened(std::span<const std::uint64_t> identities, const RequestStats& request,
                       std::int64_t time_s) {
  curve_.request(identities);
  for (Scale& scale : scales_) {
    scale.sample.clear();
    for (std::size_t i = 0; i < identities.size(); ++i) add_to_sample(scale, identities[i], i);
    if (scale.sample.empty()) continue;
    const bool goes_on = !is_sampled(scale, identities.back());
    for (std::size_t policy = 0; policy < scale.shadows.size(); ++policy) {
      scale.found[policy] += scale.shadows[policy].open(scale.sample, request, time_s, goes_on);
    }
  }
}

void LiveCurve::close_shadows(Scale& scale, const RequestStats& request, std::int64_t time_s,
                              bool ends_here) {
  if (scale.sample.empty()) return;
  for (ShadowCache& shadow : scale.shadows) {
    shadow.close(scale.sample, request, time_s, ends_here);
  }
}

// Blocks of tokens that a cache has, each with a page of every group. Where windows let pages go it
// has more.
std::uint64_t LiveCurve::nodes_at(double size) const {
  const double pages = size * static_cast<double>(options_.blocks);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(pages) / options_.groups);
}

std::optional<double> LiveCurve::rate_of(const Scale& scale, std::size_t policy) const {
  if (scale.rate < 1 && !eviction_policies()[policy]->can_be_sampled) return std::nullopt;
  const double lru = curve_.hit_rate(nodes_at(scale.size));
  if (curve_.blocks_asked() == 0) return 0;
  const double more = static_cast<double>(scale.found[policy]) -
                      static_cast<double>(scale.found[index_of(lru_policy())]);
  const double asked = scale.rate * static_cast<double>(curve_.blocks_asked());
  return std::clamp(lru + more / asked, 0.0, 1.0);
}

CurveStats LiveCurve::stats(const EvictionPolicy& own) const {
  CurveStats stats;
  stats.blocks = options_.blocks;
  stats.blocks_asked = curve_.blocks_asked();
  stats.sampling_rate = curve_.sampling_rate();
  stats.policy = own.name;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    stats.lru[i] = {
        .blocks = static_cast<std::uint64_t>(kSizes[i] * static_cast<double>(options_.blocks)),
        .hit_rate = curve_.hit_rate(nodes_at(kSizes[i]))};
  }
  const auto policies = eviction_policies();
  ASSERT(policies.size() <= stats.rates.size(), "there is a row for every policy");
  stats.policies = policies.size();
  for (std::size_t i = 0; i < policies.size(); ++i) {
    stats.rates[i] = {.policy = policies[i]->name,
                      .half = rate_of(scales_[0], i),
                      .same = rate_of(scales_[1], i),
                      .twice = rate_of(scales_[2], i)};
  }
  return stats;
}

void LiveCurve::check() const {
  curve_.check();
  for (const Scale& scale : scales_) {
    for (const ShadowCache& shadow : scale.shadows) shadow.check();
  }
}

}  // namespace pagoda::kv
