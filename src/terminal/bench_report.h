// A BenchReport is the result of a benchmark: a table with its machine, its command and its
// settings; as text or as one JSON object
//
//   {"benchmark", "machine", "command", "settings", <figures>, "rows": [{<column>: <cell>}, …]}
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "terminal/bench_machine.h"

namespace pagoda::terminal {

// A JSON value in the making. Its constructors are no templates, so that who fills a report does
// not compile the JSON library.
class ReportValue {
 public:
  using Json = nlohmann::ordered_json;

  ReportValue();  // null
  ReportValue(std::nullptr_t) : ReportValue() {}
  ReportValue(bool value);
  ReportValue(int value);
  ReportValue(std::uint32_t value);
  ReportValue(std::int64_t value);
  ReportValue(std::uint64_t value);
  ReportValue(double value);
  ReportValue(const char* text);
  ReportValue(std::string_view text);
  ReportValue(const std::string& text);
  ReportValue(const std::vector<std::string>& texts);
  ReportValue(const std::vector<std::uint32_t>& numbers);
  ReportValue(const std::vector<double>& numbers);
  ReportValue(const Json& json);

  const Json& json() const { return *json_; }

 private:
  std::shared_ptr<const Json> json_;
};

struct BenchColumn {
  std::string key;    // in JSON: with its unit
  std::string title;  // in the table
  int decimals = 0;   // of numbers that are not whole, in the table; JSON has them all
};

class BenchReport {
 public:
  using Json = nlohmann::ordered_json;

  BenchReport(std::string benchmark, std::vector<BenchColumn> columns);

  void add_setting(const std::string& key, const ReportValue& value);
  // One cell per column; null where there is nothing to say.
  void add_row(std::vector<ReportValue> cells);
  // In the table, rows whose first cell is `name` are shown as `title`; JSON has the name.
  void set_row_title(const std::string& name, std::string title);
  // A number drawn from the table, and the line that says it below the table.
  void add_figure(const std::string& key, const ReportValue& value, std::string sentence);
  // In JSON alone.
  void add_detail(const std::string& key, const ReportValue& value);

  std::string text(const BenchMachine& machine, const std::string& command) const;
  Json json(const BenchMachine& machine, const std::string& command) const;
  // The same as text, with its newline.
  std::string json_text(const BenchMachine& machine, const std::string& command) const;

 private:
  std::string cell_text(const std::vector<ReportValue>& row, std::size_t column) const;

  std::string benchmark_;
  std::vector<BenchColumn> columns_;
  std::vector<std::pair<std::string, ReportValue>> settings_;
  std::vector<std::vector<ReportValue>> rows_;
  std::map<std::string, std::string> row_titles_;  // [first cell]
  std::vector<std::pair<std::string, ReportValue>> figures_;
  std::vector<std::string> sentences_;
};

}  // namespace pagoda::terminal
