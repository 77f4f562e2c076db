#include "server/api/cache_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/byte_size.h"

namespace pagoda::server {
namespace {

// The share of what more memory can give that the advised size gives: the curve's last rise often
// costs most of its memory.
constexpr double kShareOfRise = 0.8;

// Sizes, smallest first, with what the cache's own policy would have found. A policy other than lru
// is known at three of them, as far as a sample tells.
std::vector<kv::CurvePoint> own_points(const kv::CurveStats& curve) {
  if (curve.policy == "lru") return {curve.lru.begin(), curve.lru.end()};
  const kv::PolicyRates* const own = curve.own();
  if (own == nullptr) return {};
  std::vector<kv::CurvePoint> points;
  if (own->half) points.push_back({curve.blocks / 2, *own->half});
  if (own->same) points.push_back({curve.blocks, *own->same});
  if (own->twice) points.push_back({curve.blocks * 2, *own->twice});
  return points;
}

// Beyond the largest size the rate stays as it is there; without a point it is 0.
double rate_at(std::span<const kv::CurvePoint> points, double blocks) {
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto low = static_cast<double>(points[i - 1].blocks);
    const auto high = static_cast<double>(points[i].blocks);
    if (blocks > high) continue;
    const double share = std::clamp((blocks - low) / (high - low), 0.0, 1.0);
    return points[i - 1].hit_rate + share * (points[i].hit_rate - points[i - 1].hit_rate);
  }
  return points.empty() ? 0 : points.back().hit_rate;
}

class Adviser {
 public:
  Adviser(const kv::CurveStats& curve, std::uint64_t block_bytes)
      : curve_(curve),
        block_bytes_(block_bytes),
        points_(own_points(curve)),
        now_(rate_at(points_, static_cast<double>(curve.blocks))) {}

  std::optional<CacheAdvice> more_memory() const {
    double most = now_;
    for (const kv::CurvePoint& point : points_) most = std::max(most, point.hit_rate);
    if (most - now_ < kAdviceRiseMin) return std::nullopt;
    const double enough = now_ + kShareOfRise * (most - now_);
    const auto found = std::find_if(points_.begin(), points_.end(), [&](const auto& point) {
      return point.blocks > curve_.blocks && point.hit_rate >= enough &&
             point.hit_rate - now_ >= kAdviceRiseMin;
    });
    if (found == points_.end()) return std::nullopt;
    const std::uint64_t bytes = (found->blocks - curve_.blocks) * block_bytes_;
    return advice(
        CacheAdvice::Kind::kMemory, found->hit_rate, static_cast<std::int64_t>(bytes),
        fmt::format("{} more would raise hits {}", size_text(bytes), from_to(found->hit_rate)));
  }

  std::optional<CacheAdvice> less_memory() const {
    const auto found = std::find_if(points_.begin(), points_.end(), [&](const auto& point) {
      return point.hit_rate >= now_ - kAdviceFallMax;
    });
    if (found == points_.end() || found->blocks >= curve_.blocks) return std::nullopt;
    const std::uint64_t bytes = (curve_.blocks - found->blocks) * block_bytes_;
    return advice(
        CacheAdvice::Kind::kMemory, found->hit_rate, -static_cast<std::int64_t>(bytes),
        fmt::format("{} less would cost no hits: {:.0f} % as now", size_text(bytes), 100 * now_));
  }

  // The dtype with the most exact rows, the largest, that gives what `memory` would; else that
  // which gives most.
  std::optional<CacheAdvice> dtype(std::vector<DtypeBlock> smaller,
                                   const CacheAdvice& memory) const {
    std::stable_sort(smaller.begin(), smaller.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    std::optional<CacheAdvice> best;
    for (const DtypeBlock& block : smaller) {
      const double rate =
          rate_at(points_, static_cast<double>(curve_.blocks) * static_cast<double>(block_bytes_) /
                               static_cast<double>(block.bytes));
      const bool is_enough = rate >= memory.hit_rate - kAdviceFallMax;
      const bool is_better = rate - now_ >= kAdviceRiseMin && (!best || rate > best->hit_rate);
      if (!is_enough && !is_better) continue;
      best = advice(CacheAdvice::Kind::kDtype, rate, 0,
                    is_enough ? fmt::format("{} KV would do it in today's memory", block.dtype)
                              : fmt::format("{} KV would raise hits {} in today's memory",
                                            block.dtype, from_to(rate)));
      best->name = block.dtype;
      if (is_enough) break;
    }
    return best;
  }

  // Policies are compared by the same estimate, each by its own row.
  std::optional<CacheAdvice> policy() const {
    const kv::PolicyRates* const own = curve_.own();
    if (own == nullptr || !own->same) return std::nullopt;
    const kv::PolicyRates* best = own;
    for (const kv::PolicyRates& row : curve_.by_policy()) {
      if (row.same && *row.same > *best->same) best = &row;
    }
    if (*best->same - *own->same < kAdviceRiseMin) return std::nullopt;
    return CacheAdvice{
        .kind = CacheAdvice::Kind::kPolicy,
        .text = fmt::format("the policy {} would raise hits from {:.0f} to {:.0f} % in today's "
                            "memory",
                            best->policy, 100 * *own->same, 100 * *best->same),
        .name = std::string(best->policy),
        .hit_rate_now = *own->same,
        .hit_rate = *best->same};
  }

 private:
  static std::string size_text(std::uint64_t bytes) {
    return format_byte_size(static_cast<double>(bytes));
  }
  std::string from_to(double rate) const {
    return fmt::format("from {:.0f} to {:.0f} %", 100 * now_, 100 * rate);
  }
  CacheAdvice advice(CacheAdvice::Kind kind, double rate, std::int64_t bytes_more,
                     std::string text) const {
    return {.kind = kind,
            .text = std::move(text),
            .bytes_more = bytes_more,
            .hit_rate_now = now_,
            .hit_rate = rate};
  }

  const kv::CurveStats& curve_;
  const std::uint64_t block_bytes_;
  const std::vector<kv::CurvePoint> points_;
  const double now_;
};

Json advice_json(const CacheAdvice& advice) {
  Json json = {
      {"text", advice.text}, {"hit_rate_now", advice.hit_rate_now}, {"hit_rate", advice.hit_rate}};
  switch (advice.kind) {
    case CacheAdvice::Kind::kMemory:
      json["kind"] = "memory";
      json["bytes_more"] = advice.bytes_more;
      break;
    case CacheAdvice::Kind::kDtype:
      json["kind"] = "dtype";
      json["dtype"] = advice.name;
      break;
    case CacheAdvice::Kind::kPolicy:
      json["kind"] = "policy";
      json["policy"] = advice.name;
      break;
  }
  return json;
}

}  // namespace

std::vector<CacheAdvice> advise_on_cache(const kv::CurveStats& curve, std::uint64_t block_bytes,
                                         std::span<const DtypeBlock> smaller) {
  if (curve.blocks == 0 || curve.blocks_asked < kAdviceBlocksMin) return {};
  const Adviser adviser(curve, block_bytes);
  std::vector<CacheAdvice> all;
  const auto add = [&](std::optional<CacheAdvice> advice) {
    if (advice) all.push_back(*std::move(advice));
  };
  if (const std::optional<CacheAdvice> more = adviser.more_memory()) {
    add(more);
    add(adviser.dtype({smaller.begin(), smaller.end()}, *more));
  } else {
    add(adviser.less_memory());
  }
  add(adviser.policy());
  return all;
}

Json describe_advice(const ServedModel& model, const kv::CurveStats& curve) {
  std::vector<DtypeBlock> smaller;
  if (const auto sizes = model.facts.find("kv_block_bytes_by_dtype"); sizes != model.facts.end()) {
    for (const auto& [dtype, bytes] : sizes->items()) smaller.push_back({dtype, bytes});
  }
  Json all = Json::array();
  for (const CacheAdvice& advice : advise_on_cache(curve, model.block_bytes, smaller)) {
    all.push_back(advice_json(advice));
  }
  return all;
}

}  // namespace pagoda::server
