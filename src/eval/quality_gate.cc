#include "eval/quality_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/byte_size.h"

namespace pagoda::eval {
namespace {

// Formats that keep at least as many bits as the baseline.
constexpr std::array<std::string_view, 3> kFullNames = {"fp32", "fp16", kBaselineName};

std::string served_text(const ServedKv& kv) {
  return fmt::format("KV {}: {} bits a token, {} tokens fit", kv.configuration,
                     format_grouped(static_cast<std::uint64_t>(std::llround(kv.bits_per_token))),
                     format_grouped(kv.tokens));
}

}  // namespace

bool is_below_baseline(std::string_view configuration) {
  const auto is_full = [](std::string_view name) {
    return std::find(kFullNames.begin(), kFullNames.end(), name) != kFullNames.end();
  };
  const std::string_view format = configuration.substr(0, configuration.find(' '));
  const std::size_t slash = format.find('/');
  if (slash == format.npos) return !is_full(format);
  return !is_full(format.substr(0, slash)) || !is_full(format.substr(slash + 1));
}

std::optional<Measurement> find_measurement(const app::VerdictStore& store,
                                            const std::string& model, const app::VerdictKey& key) {
  const auto counts_more = [](const Measurement& one, const Measurement& other) {
    if (one.has_verdict() != other.has_verdict()) return one.has_verdict();
    if (one.is_full() != other.is_full()) return one.is_full();
    return one.divergence.rows > other.divergence.rows;
  };
  std::optional<Measurement> best;
  for (const app::StoredVerdict& verdict : store.read(model)) {
    if (verdict.key != key) continue;
    std::optional<Measurement> measured = read_measurement(verdict.result);
    if (measured && (!best || counts_more(*measured, *best))) best = std::move(measured);
  }
  return best;
}

std::string measured_line(const ServedKv& kv, const Measurement& measured) {
  const std::string reason = reason_against(measured);
  return fmt::format("{}; mean KL {:.2g}, same top token {:.2f} % of {} positions{}{}",
                     served_text(kv), measured.divergence.kl_mean,
                     100 * measured.divergence.same_top, format_grouped(measured.divergence.rows),
                     reason.empty()           ? ""
                     : measured.has_verdict() ? ": below the bounds, as "
                                              : ": no verdict, as ",
                     reason);
}

std::string unmeasured_line(const ServedKv& kv, const std::string& command) {
  return fmt::format("{}; quality not measured: {}", served_text(kv), command);
}

}  // namespace pagoda::eval
