#include "eval/measurement.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace pagoda::eval {
namespace {

using MeasurementJson = nlohmann::ordered_json;

MeasurementJson perplexity_json(const app::Perplexity& perplexity) {
  return {{"value", perplexity.value}, {"standard_error", perplexity.error}};
}

// Reads numbers and texts of one object; remembers when one was not there.
class ObjectReader {
 public:
  explicit ObjectReader(const MeasurementJson& json) : json_(json), ok_(json.is_object()) {}

  bool ok() const { return ok_; }

  double number(const char* key) {
    const MeasurementJson& found = member(key);
    if (found.is_number()) return found.get<double>();
    ok_ = false;
    return 0;
  }
  std::uint32_t count(const char* key) {
    const double value = number(key);
    if (value >= 0 && value <= double{UINT32_MAX} && std::floor(value) == value) {
      return static_cast<std::uint32_t>(value);
    }
    ok_ = false;
    return 0;
  }
  std::string text(const char* key) {
    const MeasurementJson& found = member(key);
    if (found.is_string()) return found.get<std::string>();
    ok_ = false;
    return {};
  }
  const MeasurementJson& member(const char* key) {
    static const MeasurementJson kNone;
    return ok_ && json_.contains(key) ? json_[key] : kNone;
  }

 private:
  const MeasurementJson& json_;
  bool ok_;
};

bool read_perplexity(const MeasurementJson& json, app::Perplexity& perplexity) {
  ObjectReader reader(json);
  perplexity = {reader.number("value"), reader.number("standard_error")};
  return reader.ok();
}

bool read_divergence(const MeasurementJson& json, Divergence& divergence) {
  ObjectReader reader(json);
  divergence = {.rows = reader.count("positions"),
                .kl_mean = reader.number("kl_mean"),
                .kl_p99 = reader.number("kl_p99"),
                .kl_max = reader.number("kl_max"),
                .same_top = reader.number("same_top")};
  return reader.ok();
}

bool read_task(const MeasurementJson& json, TaskScore& task) {
  ObjectReader reader(json);
  task = {.task = reader.text("task"),
          .right = reader.count("right"),
          .asked = reader.count("asked"),
          .right_baseline = reader.count("right_baseline")};
  const MeasurementJson& cells = reader.member("cells");
  if (!reader.ok() || !cells.is_array()) return false;
  for (const MeasurementJson& each : cells) {
    ObjectReader cell(each);
    task.cells.push_back({cell.text("cell"), cell.count("right"), cell.count("asked")});
    if (!cell.ok()) return false;
  }
  return true;
}

}  // namespace

MeasurementJson measurement_json(const Measurement& measured) {
  MeasurementJson tasks = MeasurementJson::array();
  for (const TaskScore& task : measured.tasks) {
    MeasurementJson cells = MeasurementJson::array();
    for (const TaskCell& cell : task.cells) {
      cells.push_back({{"cell", cell.name}, {"right", cell.right}, {"asked", cell.asked}});
    }
    tasks.push_back({{"task", task.task},
                     {"right", task.right},
                     {"asked", task.asked},
                     {"right_baseline", task.right_baseline},
                     {"model_can", task.model_can()},
                     {"cells", std::move(cells)}});
  }
  return {{"bits_per_token", measured.bits_per_token},
          {"bounded_share", measured.bounded_share},
          {"perplexity_windows", perplexity_json(measured.perplexity_windows)},
          {"perplexity_depth", perplexity_json(measured.perplexity_depth)},
          {"divergence",
           {{"positions", measured.divergence.rows},
            {"kl_mean", measured.divergence.kl_mean},
            {"kl_p99", measured.divergence.kl_p99},
            {"kl_max", measured.divergence.kl_max},
            {"same_top", measured.divergence.same_top}}},
          {"tasks", std::move(tasks)}};
}

std::optional<Measurement> read_measurement(const MeasurementJson& json) {
  Measurement measured;
  ObjectReader reader(json);
  measured.bits_per_token = reader.number("bits_per_token");
  measured.bounded_share = reader.number("bounded_share");
  const MeasurementJson& tasks = reader.member("tasks");
  if (!reader.ok() || !tasks.is_array() ||
      !read_perplexity(reader.member("perplexity_windows"), measured.perplexity_windows) ||
      !read_perplexity(reader.member("perplexity_depth"), measured.perplexity_depth) ||
      !read_divergence(reader.member("divergence"), measured.divergence)) {
    return std::nullopt;
  }
  for (const MeasurementJson& each : tasks) {
    TaskScore task;
    if (!read_task(each, task)) return std::nullopt;
    measured.tasks.push_back(std::move(task));
  }
  return measured;
}

std::string reason_against(const Measurement& measured) {
  const Divergence& divergence = measured.divergence;
  if (!(measured.bounded_share >= kBoundedShareMin)) {
    return fmt::format(
        "its policy keeps something from {:.0f} % of the positions measured, fewer than {:.0f} %: "
        "measure deeper",
        100 * measured.bounded_share, 100 * kBoundedShareMin);
  }
  if (!measured.has_verdict()) {
    return fmt::format("{} positions were measured, a verdict needs {}", divergence.rows,
                       kVerdictPositionsMin);
  }
  if (!(divergence.kl_mean <= kKlMeanMax)) {
    return fmt::format("mean KL {:.2g} is above {}", divergence.kl_mean, kKlMeanMax);
  }
  if (!(divergence.same_top >= kSameTopMin)) {
    return fmt::format("the top token is the same at {:.2f} % of positions, less than {:.0f} %",
                       100 * divergence.same_top, 100 * kSameTopMin);
  }
  for (const TaskScore& task : measured.tasks) {
    const double lost = static_cast<double>(task.right_baseline) - static_cast<double>(task.right);
    if (!task.model_can() || lost <= kTaskLossMax * task.asked) continue;
    return fmt::format("{}: {} of {} right, {} with the baseline", task.task, task.right,
                       task.asked, task.right_baseline);
  }
  return {};
}

}  // namespace pagoda::eval
