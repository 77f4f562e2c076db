#include "replay/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/byte_size.h"

namespace pagoda::replay {
namespace {

using Json = nlohmann::ordered_json;
using Rate = double (HitCounts::*)() const;

constexpr std::size_t kLabelWidth = 16;
constexpr std::size_t kSampledLabelWidth = 24;
constexpr std::size_t kColumnWidthMin = 9;

// Belady is none that a running cache could have.
std::vector<std::string> sampled_policies(const TraceReport& report) {
  std::vector<std::string> policies;
  for (const PolicyCurve& curve : report.curves) {
    if (kv::find_policy(curve.policy) != nullptr) policies.push_back(curve.policy);
  }
  return policies;
}

// The columns of a table: one per capacity.
class Columns {
 public:
  Columns(const TraceReport& report, std::span<const Capacity> capacities)
      : report_(report), capacities_(capacities) {
    for (std::size_t c = 0; c < capacities.size(); ++c) {
      const std::size_t digits = format_grouped(report.capacity_blocks[c]).size();
      width_ = std::max({width_, capacities[c].text.size() + 2, digits + 2});
    }
  }

  template <class Cell>
  std::string row(std::string_view label, Cell&& cell) const {
    std::string text =
        fmt::format("{:<{}}", label, report_.sampled ? kSampledLabelWidth : kLabelWidth);
    for (std::size_t c = 0; c < capacities_.size(); ++c) {
      text += fmt::format("{:>{}}", cell(c), width_);
    }
    return text + "\n";
  }

  std::string blocks() const {
    return row("cache blocks",
               [&](std::size_t c) { return format_grouped(report_.capacity_blocks[c]); });
  }

  // The live curve's, under the last rows of block hit rates.
  std::string sampled() const {
    std::string text;
    if (!report_.sampled) return text;
    for (const std::string& policy : sampled_policies(report_)) {
      text += row(fmt::format("  {}, sampled", policy), [&](std::size_t c) {
        const std::optional<double> rate = report_.sampled->hit_rate(policy, c);
        return rate ? fmt::format("{:.4f}", *rate) : "unknown";
      });
    }
    return text;
  }

  std::string rates(std::string_view title, Rate rate) const {
    const auto shown = [rate](const HitCounts& hits) {
      return fmt::format("{:.4f}", (hits.*rate)());
    };
    std::string text = row(title, [&](std::size_t c) { return capacities_[c].text; });
    const auto add_curve = [&](const PolicyCurve& curve) {
      text += row("  " + curve.policy, [&](std::size_t c) { return shown(curve.hits[c]); });
    };
    for (const PolicyCurve& curve : report_.curves) add_curve(curve);
    if (report_.beside) add_curve(*report_.beside);
    text += row("  infinite", [&](std::size_t) { return shown(report_.infinite); });
    return text;
  }

 private:
  const TraceReport& report_;
  std::span<const Capacity> capacities_;
  std::size_t width_ = kColumnWidthMin;
};

// How fast the cache was; nothing where the clock saw no time pass.
std::string speeds(const TraceReport& report) {
  std::string text;
  for (const PolicyCurve& curve : report.curves) {
    if (curve.seconds <= 0) continue;
    const auto touches = static_cast<double>(report.infinite.blocks * curve.hits.size());
    const auto rate = static_cast<std::uint64_t>(touches / curve.seconds);
    text += fmt::format("{}: {} block touches a second\n", curve.policy, format_grouped(rate));
  }
  return text.empty() ? text : "\n" + text;
}

Json rates_json(const HitCounts& hits) {
  return {{"blocks_hit_rate", hits.blocks_hit_rate()}, {"tokens_hit_rate", hits.tokens_hit_rate()}};
}

void add_results(Json& results, const TraceReport& report, std::span<const Capacity> capacities,
                 bool named) {
  for (const PolicyCurve& curve : report.curves) {
    for (std::size_t c = 0; c < capacities.size(); ++c) {
      Json result = named ? Json{{"trace", report.trace}} : Json::object();
      result["policy"] = curve.policy;
      result["capacity"] = capacities[c].text;
      result["capacity_blocks"] = report.capacity_blocks[c];
      result.update(rates_json(curve.hits[c]));
      results.push_back(std::move(result));
    }
  }
}

void add_sampled(Json& json, const TraceReport& report, std::span<const Capacity> capacities) {
  if (!report.sampled) return;
  Json points = Json::array();
  for (const std::string& policy : sampled_policies(report)) {
    for (std::size_t c = 0; c < capacities.size(); ++c) {
      const std::optional<double> rate = report.sampled->hit_rate(policy, c);
      points.push_back({{"policy", policy},
                        {"capacity", capacities[c].text},
                        {"capacity_blocks", report.capacity_blocks[c]},
                        {"blocks_hit_rate", rate ? Json(*rate) : Json()}});
    }
  }
  json["sampled"] = {{"sampling_rate", report.sampled->snapshots.front().sampling_rate},
                     {"points", std::move(points)}};
}

void add_counts(Json& json, const TraceReport& report) {
  json["infinite"] = rates_json(report.infinite);
  json["requests"] = report.requests;
  json["blocks"] = report.infinite.blocks;
  json["unique_blocks"] = report.unique_blocks;
  json["malformed_lines"] = report.lines_malformed;
}

}  // namespace

std::string replay_text(const TraceReport& report, std::span<const Capacity> capacities,
                        std::uint64_t block_tokens) {
  const Columns columns(report, capacities);
  std::string text =
      fmt::format("{}\n  {} requests, {} blocks of {} tokens, {} of them different\n", report.trace,
                  format_grouped(report.requests), format_grouped(report.infinite.blocks),
                  format_grouped(block_tokens), format_grouped(report.unique_blocks));
  text += "\n" + columns.blocks() + columns.rates("block hit rate", &HitCounts::blocks_hit_rate) +
          columns.sampled();
  text += "\n" + columns.rates("token hit rate", &HitCounts::tokens_hit_rate);
  return text + speeds(report);
}

std::string replay_json(std::span<const TraceReport> reports, std::span<const Capacity> capacities,
                        std::uint64_t block_tokens) {
  const bool several = reports.size() > 1;
  Json json = {{"results", Json::array()}};
  TraceReport all;
  Json traces = Json::array();
  for (const TraceReport& report : reports) {
    add_results(json["results"], report, capacities, several);
    Json trace = {{"trace", report.trace}};
    add_counts(trace, report);
    add_sampled(trace, report, capacities);
    traces.push_back(std::move(trace));
    all.requests += report.requests;
    all.unique_blocks += report.unique_blocks;
    all.lines_malformed += report.lines_malformed;
    all.infinite.add(report.infinite);
  }
  add_counts(json, all);
  json["block_tokens"] = block_tokens;
  if (several) {
    json["traces"] = std::move(traces);
  } else {
    add_sampled(json, reports.front(), capacities);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pagoda::replay
