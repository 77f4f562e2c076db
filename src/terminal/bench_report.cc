#include "terminal/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/assert.h"
#include "base/byte_size.h"

namespace pagoda::terminal {
namespace {

using Json = BenchReport::Json;

std::string shown(const Json& cell, int decimals) {
  if (cell.is_null()) return "-";
  if (cell.is_string()) return cell.get<std::string>();
  if (cell.is_number_float()) return fmt::format("{:.{}f}", cell.get<double>(), decimals);
  if (cell.is_number()) return format_grouped(cell.get<std::uint64_t>());
  return cell.dump();
}

std::string settings_line(const Json& settings) {
  std::string line;
  for (const auto& [key, value] : settings.items()) {
    std::string words = key;
    std::replace(words.begin(), words.end(), '_', ' ');
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", words,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return line;
}

// Replaces what stood under the key; else the key comes last.
void set(std::vector<std::pair<std::string, ReportValue>>& members, const std::string& key,
         const ReportValue& value) {
  for (auto& [known, known_value] : members) {
    if (known != key) continue;
    known_value = value;
    return;
  }
  members.emplace_back(key, value);
}

Json object_of(const std::vector<std::pair<std::string, ReportValue>>& members) {
  Json object = Json::object();
  for (const auto& [key, value] : members) object[key] = value.json();
  return object;
}

}  // namespace

ReportValue::ReportValue() : json_(std::make_shared<Json>()) {}
ReportValue::ReportValue(bool value) : json_(std::make_shared<Json>(value)) {}
ReportValue::ReportValue(int value) : json_(std::make_shared<Json>(value)) {}
ReportValue::ReportValue(std::uint32_t value) : json_(std::make_shared<Json>(value)) {}
ReportValue::ReportValue(std::int64_t value) : json_(std::make_shared<Json>(value)) {}
ReportValue::ReportValue(std::uint64_t value) : json_(std::make_shared<Json>(value)) {}
ReportValue::ReportValue(double value) : json_(std::make_shared<Json>(value)) {}
ReportValue::ReportValue(const char* text) : json_(std::make_shared<Json>(text)) {}
ReportValue::ReportValue(std::string_view text) : json_(std::make_shared<Json>(text)) {}
ReportValue::ReportValue(const std::string& text) : json_(std::make_shared<Json>(text)) {}
ReportValue::ReportValue(const std::vector<std::string>& texts)
    : json_(std::make_shared<Json>(texts)) {}
ReportValue::ReportValue(const std::vector<std::uint32_t>& numbers)
    : json_(std::make_shared<Json>(numbers)) {}
ReportValue::ReportValue(const std::vector<double>& numbers)
    : json_(std::make_shared<Json>(numbers)) {}
ReportValue::ReportValue(const Json& json) : json_(std::make_shared<Json>(json)) {}

BenchReport::BenchReport(std::string benchmark, std::vector<BenchColumn> columns)
    : benchmark_(std::move(benchmark)), columns_(std::move(columns)) {}

void BenchReport::add_setting(const std::string& key, const ReportValue& value) {
  set(settings_, key, value);
}

void BenchReport::add_row(std::vector<ReportValue> cells) {
  ASSERT(cells.size() == columns_.size(), "a row has a cell for each column");
  rows_.push_back(std::move(cells));
}

void BenchReport::set_row_title(const std::string& name, std::string title) {
  row_titles_[name] = std::move(title);
}

std::string BenchReport::cell_text(const std::vector<ReportValue>& row, std::size_t column) const {
  std::string cell = shown(row[column].json(), columns_[column].decimals);
  if (column > 0) return cell;
  const auto title = row_titles_.find(cell);
  return title == row_titles_.end() ? cell : title->second;
}

void BenchReport::add_figure(const std::string& key, const ReportValue& value,
                             std::string sentence) {
  add_detail(key, value);
  sentences_.push_back(std::move(sentence));
}

void BenchReport::add_detail(const std::string& key, const ReportValue& value) {
  set(figures_, key, value);
}

std::string BenchReport::text(const BenchMachine& machine, const std::string& command) const {
  std::string text =
      fmt::format("command   {}\nmachine   {} x {} ({}), kernels {}, {}\nsettings  {}\n\n", command,
                  machine.cores, machine.cpu, machine.architecture, machine.kernels, machine.build,
                  settings_line(object_of(settings_)));
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = columns_[c].title.size();
    for (const std::vector<ReportValue>& row : rows_) {
      width = std::max(width, cell_text(row, c).size());
    }
    widths.push_back(width);
  }
  const auto add_line = [&](auto&& cell) {
    std::string line = fmt::format("{:<{}}", cell(0), widths[0]);
    for (std::size_t c = 1; c < columns_.size(); ++c) {
      line += fmt::format("  {:>{}}", cell(c), widths[c]);
    }
    text += line + "\n";
  };
  add_line([&](std::size_t c) { return columns_[c].title; });
  for (const std::vector<ReportValue>& row : rows_) {
    add_line([&](std::size_t c) { return cell_text(row, c); });
  }
  if (!sentences_.empty()) text += "\n";
  for (const std::string& sentence : sentences_) text += sentence + "\n";
  return text;
}

Json BenchReport::json(const BenchMachine& machine, const std::string& command) const {
  Json json = {{"benchmark", benchmark_},
               {"machine",
                {{"cpu", machine.cpu},
                 {"cores", machine.cores},
                 {"architecture", machine.architecture},
                 {"kernels", machine.kernels},
                 {"build", machine.build}}},
               {"command", command},
               {"settings", object_of(settings_)}};
  json.update(object_of(figures_));
  json["rows"] = Json::array();
  for (const std::vector<ReportValue>& row : rows_) {
    Json object = Json::object();
    for (std::size_t c = 0; c < columns_.size(); ++c) object[columns_[c].key] = row[c].json();
    json["rows"].push_back(std::move(object));
  }
  return json;
}

std::string BenchReport::json_text(const BenchMachine& machine, const std::string& command) const {
  return json(machine, command).dump(2) + "\n";
}

}  // namespace pagoda::terminal
