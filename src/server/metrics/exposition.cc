#include "server/metrics/exposition.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>

namespace pagoda::server {
namespace {

constexpr std::string_view kOpenMetricsType = "application/openmetrics-text";
constexpr std::array<std::string_view, 3> kKindNames = {"counter", "gauge", "histogram"};

void add_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\' || (quotes && c == '"')) out += '\\';
      out += c;
    }
  }
}

void add_label(std::string& out, const Exposition::Label& label) {
  if (!out.empty()) out += ',';
  out += label.first;
  out += "=\"";
  add_escaped(out, label.second, true);
  out += '"';
}

// Prints "1.0", not "1": bounds are labels, and labels are compared as text.
std::string bound_text(double bound) {
  std::string text = fmt::format("{}", bound);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

// Clients that read both formats list OpenMetrics before plain text, so that naming it is enough.
ExpositionFormat wanted_format(std::string_view accept) {
  return accept.find(kOpenMetricsType) == std::string_view::npos ? ExpositionFormat::kText
                                                                 : ExpositionFormat::kOpenMetrics;
}

std::string_view content_type_of(ExpositionFormat format) {
  return format == ExpositionFormat::kText
             ? "text/plain; version=0.0.4; charset=utf-8"
             : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

void Exposition::set_shared_labels(Labels labels) {
  shared_.clear();
  for (const Label& label : labels) add_label(shared_, label);
}

void Exposition::begin(Kind kind, std::string_view name, std::string_view help) {
  kind_ = kind;
  name_ = name;
  const bool open = format_ == ExpositionFormat::kOpenMetrics;
  const std::string_view ending = open ? "" : suffix();
  fmt::format_to(std::back_inserter(text_), "# HELP {}{} ", name, ending);
  add_escaped(text_, help, open);
  fmt::format_to(std::back_inserter(text_), "\n# TYPE {}{} {}\n", name, ending,
                 kKindNames[static_cast<std::size_t>(kind)]);
}

void Exposition::sample(double value, Labels labels) {
  add_sample(suffix(), labels, {}, fmt::format("{}", value));
}

void Exposition::sample(const Histogram::Reading& reading, Labels labels, double bound_max) {
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < reading.bounds.size() && reading.bounds[i] <= bound_max; ++i) {
    so_far += reading.counts[i];
    add_sample("_bucket", labels, bound_text(reading.bounds[i]), std::to_string(so_far));
  }
  const std::string count = std::to_string(reading.count());
  add_sample("_bucket", labels, "+Inf", count);
  add_sample("_count", labels, {}, count);
  add_sample("_sum", labels, {}, fmt::format("{}", reading.sum));
}

void Exposition::add_sample(std::string_view suffix, Labels labels, std::string_view bound,
                            std::string_view value) {
  std::string all = shared_;
  for (const Label& label : labels) add_label(all, label);
  if (!bound.empty()) add_label(all, {"le", bound});
  const auto out = std::back_inserter(text_);
  if (all.empty()) {
    fmt::format_to(out, "{}{} {}\n", name_, suffix, value);
  } else {
    fmt::format_to(out, "{}{}{{{}}} {}\n", name_, suffix, all, value);
  }
}

std::string Exposition::finish() {
  if (format_ == ExpositionFormat::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace pagoda::server
