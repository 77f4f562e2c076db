// A Measurement holds the figures of one configuration; reason_against() turns them into a verdict.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/perplexity.h"
#include "eval/divergence.h"

namespace pagoda::eval {

// A place of a task's grid, such as a needle's depth and the length of its text.
struct TaskCell {
  std::string name;
  std::uint32_t right = 0;
  std::uint32_t asked = 0;
};

struct TaskScore {
  std::string task;
  std::uint32_t right = 0;
  std::uint32_t asked = 0;
  std::uint32_t right_baseline = 0;
  std::vector<TaskCell> cells = {};

  // A task that the baseline fails more often than not says nothing about a configuration.
  bool model_can() const { return asked > 0 && right_baseline * 2 >= asked; }
};

// At 98 % of the same top token two of so many positions may differ: fewer say nothing.
inline constexpr std::uint64_t kVerdictPositionsMin = 100;

struct Measurement {
  double bits_per_token = 0;  // of keys and values, all layers
  double bounded_share = 1;   // of positions at depth: those that a KV policy keeps something from
  app::Perplexity perplexity_windows = {};
  app::Perplexity perplexity_depth = {};
  Divergence divergence = {};  // from the baseline; rows: those at depth
  std::vector<TaskScore> tasks = {};

  // More than the part at depth was measured: the verdict of a quick look never stands for it.
  bool is_full() const { return !tasks.empty() || perplexity_windows.value > 0; }
  // Enough positions at depth were read for reason_against() to say anything of the configuration.
  bool has_verdict() const { return divergence.rows >= kVerdictPositionsMin; }
};

nlohmann::ordered_json measurement_json(const Measurement& measured);
// Returns nothing where the JSON is none of measurement_json().
std::optional<Measurement> read_measurement(const nlohmann::ordered_json& json);

// The bounds of a verdict: a configuration passes within all of them.
inline constexpr double kKlMeanMax = 0.01;   // nats
inline constexpr double kSameTopMin = 0.98;  // share of positions
inline constexpr double kTaskLossMax = 0.1;  // share of a task's questions, of tasks that count

// A policy that bounds fewer positions was not measured.
inline constexpr double kBoundedShareMin = 0.5;

// Returns why a configuration does not pass; empty: it passes.
std::string reason_against(const Measurement& measured);

}  // namespace pagoda::eval
