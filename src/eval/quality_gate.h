// The quality gate tells how good a server's KV configuration is, and decides whether it is served.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "app/verdict_store.h"
#include "eval/measurement.h"

namespace pagoda::eval {

enum class GateMode : std::uint8_t {
  kWarn,    // says the verdict, or measures one while nothing runs
  kRefuse,  // measures before serving, and does not serve below the bounds
  kOff,
};

// Other configurations are compared with this one.
inline constexpr std::string_view kBaselineName = "bf16";

// Is this configuration expected to cost quality against the baseline? Names that are not known
// are; layers that it skips do not matter.
bool is_below_baseline(std::string_view configuration);

// Returns the verdict of a key that counts most: one of enough positions (has_verdict) before any
// of fewer, a full one before any quick one, then that of most positions, of equal ones the newest.
std::optional<Measurement> find_measurement(const app::VerdictStore& store,
                                            const std::string& model, const app::VerdictKey& key);

// The facts of a served cache that the lines below name.
struct ServedKv {
  std::string configuration;
  double bits_per_token = 0;
  std::uint64_t tokens = 0;  // that fit
};
// "KV int8: 23,040 bits a token, 81,920 tokens fit; mean KL 0.00012, same top token 99.60 %"
std::string measured_line(const ServedKv& kv, const Measurement& measured);
// `command` measures it.
std::string unmeasured_line(const ServedKv& kv, const std::string& command);

}  // namespace pagoda::eval
