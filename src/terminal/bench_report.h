// What a benchmark found: a table with its machine, its command and its settings; as text or as one
// JSON object
//
//   {"benchmark", "machine", "command", "settings", <figures>, "rows": [{<column>: <cell>}, …]}
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "terminal/bench_machine.h"

namespace pagoda::terminal {

struct BenchColumn {
  std::string key;    // in JSON: with its unit
  std::string title;  // in the table
  int decimals = 0;   // of numbers that are not whole, in the table; JSON has them all
};

class BenchReport {
 public:
  using Json = nlohmann::ordered_json;

  BenchReport(std::string benchmark, std::vector<BenchColumn> columns);

  void add_setting(const std::string& key, Json value);
  // One cell per column; null where there is nothing to say.
  void add_row(std::vector<Json> cells);
  // In the table, rows whose first cell is `name` are shown as `title`; JSON has the name.
  void set_row_title(const std::string& name, std::string title);
  // A number drawn from the table, and the line that says it below the table.
  void add_figure(const std::string& key, Json value, std::string sentence);
  // In JSON alone.
  void add_detail(const std::string& key, Json value);

  std::string text(const BenchMachine& machine, const std::string& command) const;
  Json json(const BenchMachine& machine, const std::string& command) const;

 private:
  std::string cell_text(const std::vector<Json>& row, std::size_t column) const;

  std::string benchmark_;
  std::vector<BenchColumn> columns_;
  Json settings_ = Json::object();
  std::vector<std::vector<Json>> rows_;
  std::map<std::string, std::string> row_titles_;  // [first cell]
  Json figures_ = Json::object();
  std::vector<std::string> sentences_;
};

}  // namespace pagoda::terminal
