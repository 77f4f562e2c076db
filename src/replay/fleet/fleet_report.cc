#include "replay/fleet/fleet_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/byte_size.h"
#include "terminal/json_text.h"

namespace pagoda::replay {
namespace {

using FleetJson = nlohmann::ordered_json;

constexpr double kGigabyte = 1e9;

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}

std::size_t index_of(const FleetTier& tier) { return static_cast<std::size_t>(tier.kind); }

double bytes_of(const FleetRow& row, std::uint64_t blocks) {
  return static_cast<double>(blocks) * static_cast<double>(row.run.block_bytes());
}

// One column of the table: a title and what a row has there.
struct FleetColumn {
  std::string title;
  std::function<std::string(const FleetRow&)> cell;
};

std::vector<FleetColumn> columns_of(const FleetRow& first) {
  const auto percent = [](double part) { return fmt::format("{:.1f}%", 100 * part); };
  const auto seconds = [](double s) { return fmt::format("{:.{}f}", s, s < 100 ? 3 : 0); };
  std::vector<FleetColumn> columns = {
      {"servers", [](const FleetRow& row) { return format_grouped(row.run.servers); }},
      {"router", [](const FleetRow& row) { return std::string(router_name(row.run.router)); }},
      {"policy", [](const FleetRow& row) { return std::string(row.run.policy->name); }},
      {"capacity", [](const FleetRow& row) { return row.capacity; }},
      {"found", [=](const FleetRow& row) { return percent(row.result.hits.tokens_hit_rate()); }},
      {"memory", [=](const FleetRow& row) {
         return percent(share(row.result.sources.memory, row.result.hits.tokens));
       }}};
  for (const FleetTier& tier : first.run.tiers) {
    columns.push_back({std::string(fleet_tier_name(tier.kind)), [=](const FleetRow& row) {
                         const std::uint64_t tokens = row.result.sources.tiers[index_of(tier)];
                         return percent(share(tokens, row.result.hits.tokens));
                       }});
  }
  columns.push_back({"TTFT p50", [=](const FleetRow& row) { return seconds(row.ttft.p50_s); }});
  columns.push_back({"p90", [=](const FleetRow& row) { return seconds(row.ttft.p90_s); }});
  columns.push_back({"p99", [=](const FleetRow& row) { return seconds(row.ttft.p99_s); }});
  columns.push_back({"busy", [=](const FleetRow& row) { return percent(row.balance.busy_mean); }});
  columns.push_back({"max/mean", [](const FleetRow& row) {
                       return fmt::format("{:.2f}", row.balance.tokens_max_over_mean);
                     }});
  for (const FleetTier& tier : first.run.tiers) {
    columns.push_back({fmt::format("{} GB", fleet_tier_name(tier.kind)), [=](const FleetRow& row) {
                         const FleetTraffic& traffic = row.result.traffic[index_of(tier)];
                         const double read = bytes_of(row, traffic.blocks_read) / kGigabyte;
                         if (tier.kind == FleetTierKind::kPeer) return fmt::format("{:.0f}", read);
                         const double written = bytes_of(row, traffic.blocks_written) / kGigabyte;
                         return fmt::format("{:.0f} + {:.0f}", read, written);
                       }});
  }
  return columns;
}

std::string table_of(const FleetReport& report) {
  const std::vector<FleetColumn> columns = columns_of(report.rows.front());
  std::vector<std::vector<std::string>> lines;  // [line][column]
  for (const FleetColumn& column : columns) {
    if (lines.empty()) lines.emplace_back();
    lines.front().push_back(column.title);
  }
  for (const FleetRow& row : report.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const FleetColumn& column : columns) line.push_back(column.cell(row));
  }
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      std::size_t width = 0;
      for (const auto& other : lines) width = std::max(width, other[c].size());
      text += fmt::format("{:>{}}", line[c], width + 2);
    }
    text += "\n";
  }
  return text;
}

FleetJson ttft_json(const TtftSummary& ttft) {
  return {{"mean", ttft.mean_s * 1000},
          {"p50", ttft.p50_s * 1000},
          {"p90", ttft.p90_s * 1000},
          {"p99", ttft.p99_s * 1000},
          {"max", ttft.max_s * 1000}};
}

FleetJson row_json(const FleetRow& row) {
  const FleetResult& result = row.result;
  FleetJson json;
  json["servers"] = row.run.servers;
  json["router"] = router_name(row.run.router);
  json["policy"] = row.run.policy->name;
  json["capacity"] = row.capacity;
  json["capacity_blocks"] = row.run.capacity_blocks;
  json["blocks_hit_rate"] = result.hits.blocks_hit_rate();
  json["tokens_hit_rate"] = result.hits.tokens_hit_rate();
  FleetJson tokens = {{"asked", result.hits.tokens}, {"memory", result.sources.memory}};
  FleetJson traffic = FleetJson::object();
  for (const FleetTier& tier : row.run.tiers) {
    const std::string name(fleet_tier_name(tier.kind));
    const FleetTraffic& moved = result.traffic[index_of(tier)];
    tokens[name] = result.sources.tiers[index_of(tier)];
    traffic[name] = {{"bytes_read", bytes_of(row, moved.blocks_read)},
                     {"bytes_written", bytes_of(row, moved.blocks_written)},
                     {"bytes_left_out", bytes_of(row, moved.blocks_left_out)}};
  }
  tokens["computed"] = result.sources.computed;
  json["tokens"] = std::move(tokens);
  json["traffic"] = std::move(traffic);
  json["ttft_ms"] = ttft_json(row.ttft);
  json["busy"] = {{"mean", row.balance.busy_mean}, {"max", row.balance.busy_max}};
  json["tokens_computed_max_over_mean"] = row.balance.tokens_max_over_mean;
  json["requests_max_over_mean"] = row.balance.requests_max_over_mean;
  json["span_s"] = static_cast<double>(result.span_ns) * 1e-9;
  json["speed"] = result.speed;
  return json;
}

FleetJson costs_json(const FleetCosts& costs) {
  return {{"prefill_tokens_per_s", costs.prefill_tokens},
          {"decode_tokens_per_s", costs.decode_tokens},
          {"bytes_per_token", costs.bytes_per_token},
          {"host_bytes_per_s", costs.host_bytes},
          {"disk_bytes_per_s", costs.disk_bytes},
          {"network_bytes_per_s", costs.network_bytes},
          {"store_bytes_per_s", costs.store_bytes},
          {"network_latency_s", costs.network_latency_s}};
}

std::string line_name(const FleetReport& report, const FleetRow& row) {
  std::set<std::string> capacities;
  std::set<std::string_view> policies;
  for (const FleetRow& other : report.rows) {
    capacities.insert(other.capacity);
    policies.insert(other.run.policy->name);
  }
  std::string name(router_name(row.run.router));
  if (capacities.size() > 1) name += " " + row.capacity;
  if (policies.size() > 1) name += fmt::format(" {}", row.run.policy->name);
  return name;
}

}  // namespace

std::string fleet_text(const FleetReport& report) {
  std::string text =
      fmt::format("{}\n  {} requests, {} blocks, {} of them different\n", report.trace,
                  format_grouped(report.requests), format_grouped(report.blocks),
                  format_grouped(report.unique_blocks));
  if (report.rows.empty()) return text;
  const FleetRow& first = report.rows.front();
  const FleetCosts& costs = first.run.costs;
  text += fmt::format(
      "  blocks of {} tokens, {}; prefill {:.0f} tokens/s a server, decode {:.0f} a request\n",
      format_grouped(first.run.block_tokens),
      format_byte_size(static_cast<double>(first.run.block_bytes())), costs.prefill_tokens,
      costs.decode_tokens);
  text += "\n" + table_of(report);
  text +=
      "\nfound, memory and tiers in tokens of prompts; TTFT in seconds; max/mean: tokens "
      "computed\n";
  if (!first.run.tiers.empty()) text += "GB: read + written through\n";
  return text;
}

std::string fleet_json(std::span<const FleetReport> reports) {
  FleetJson json = {{"results", FleetJson::array()}, {"traces", FleetJson::array()}};
  for (const FleetReport& report : reports) {
    for (const FleetRow& row : report.rows) {
      FleetJson result =
          reports.size() > 1 ? FleetJson{{"trace", report.trace}} : FleetJson::object();
      result.update(row_json(row));
      json["results"].push_back(std::move(result));
    }
    json["traces"].push_back({{"trace", report.trace},
                              {"requests", report.requests},
                              {"blocks", report.blocks},
                              {"unique_blocks", report.unique_blocks},
                              {"malformed_lines", report.lines_malformed}});
  }
  if (!reports.empty() && !reports.front().rows.empty()) {
    const FleetRun& run = reports.front().rows.front().run;
    json["block_tokens"] = run.block_tokens;
    json["seed"] = run.seed;
    json["costs"] = costs_json(run.costs);
    for (const FleetTier& tier : run.tiers) {
      json["tiers"].push_back(
          {{"tier", fleet_tier_name(tier.kind)}, {"capacity", tier.capacity.text}});
    }
  }
  return terminal::json_text(json) + "\n";
}

std::vector<terminal::PlotPanel> fleet_panels(const FleetReport& report) {
  const std::string name = std::filesystem::path(report.trace).filename().string();
  terminal::PlotPanel found = {.title = name,
                               .x_title = "servers (logarithmic)",
                               .y_title = "token hit rate",
                               .ticks = {},
                               .lines = {}};
  terminal::PlotPanel ttft = found;
  ttft.y_title = "TTFT p90, seconds";
  std::set<std::uint32_t> servers;
  const auto add_point = [](terminal::PlotPanel& panel, const std::string& line, double x,
                            double y) {
    auto at = std::find_if(panel.lines.begin(), panel.lines.end(),
                           [&](const terminal::PlotLine& other) { return other.name == line; });
    if (at == panel.lines.end()) at = panel.lines.insert(at, {.name = line, .points = {}});
    at->points.push_back({x, y});
  };
  for (const FleetRow& row : report.rows) {
    const std::string line = line_name(report, row);
    const double x = row.run.servers;
    if (servers.insert(row.run.servers).second) {
      found.ticks.push_back({x, format_grouped(row.run.servers)});
    }
    add_point(found, line, x, row.result.hits.tokens_hit_rate());
    add_point(ttft, line, x, row.ttft.p90_s);
  }
  ttft.ticks = found.ticks;
  return {found, ttft};
}

}  // namespace pagoda::replay
