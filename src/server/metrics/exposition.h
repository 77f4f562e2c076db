// Prints metrics as text: Prometheus' own format (0.0.4), or OpenMetrics 1.0 where the client asks
// for it.
//
//   page.begin(Kind::kGauge, "vllm:num_requests_waiting_by_reason", "Requests that wait, …");
//   page.sample(3, {{"reason", "capacity"}});
//
// A counter's name is given without "_total", which its samples carry in both formats.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/counter.h"

namespace pagoda::server {

enum class ExpositionFormat : std::uint8_t { kText, kOpenMetrics };

// Returns the format that an Accept header asks for; plain text by default.
ExpositionFormat wanted_format(std::string_view accept);
std::string_view content_type_of(ExpositionFormat format);

class Exposition {
 public:
  enum class Kind : std::uint8_t { kCounter, kGauge, kHistogram };
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::initializer_list<Label>;

  explicit Exposition(ExpositionFormat format) : format_(format) {}

  // Sets the labels of every following sample.
  void set_shared_labels(Labels labels);

  // Begins a family for the samples that follow.
  void begin(Kind kind, std::string_view name, std::string_view help);
  void sample(double value, Labels labels = {});
  void sample(std::integral auto value, Labels labels = {}) {
    add_sample(suffix(), labels, {}, std::to_string(value));
  }
  // Leaves out bounds above `bound_max`, for values that never get there.
  void sample(const Histogram::Reading& reading, Labels labels = {},
              double bound_max = kNoBoundMax);

  // These write a family of one sample.
  void counter(std::string_view name, std::string_view help, auto value) {
    begin(Kind::kCounter, name, help);
    sample(value);
  }
  void gauge(std::string_view name, std::string_view help, auto value) {
    begin(Kind::kGauge, name, help);
    sample(value);
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram,
                 double bound_max = kNoBoundMax) {
    begin(Kind::kHistogram, name, help);
    sample(histogram.read(), {}, bound_max);
  }

  // Returns the whole text; nothing may be added afterwards.
  std::string finish();

 private:
  static constexpr double kNoBoundMax = 1e300;

  std::string_view suffix() const { return kind_ == Kind::kCounter ? "_total" : ""; }
  void add_sample(std::string_view suffix, Labels labels, std::string_view bound,
                  std::string_view value);

  ExpositionFormat format_;
  std::string shared_;  // model_name="…",engine="0"
  Kind kind_ = Kind::kGauge;
  std::string name_;
  std::string text_;
};

}  // namespace pagoda::server
