// When requests should be sent, counted from the start. Fixed by the options alone: a server that
// answers late changes nothing (an open loop).
#pragma once

#include <cstdint>

namespace pagoda::loadgen {

enum class ArrivalKind : std::uint8_t {
  kPoisson,   // independent clients: gaps are exponential
  kConstant,  // one every 1 / rate
  kBurst,     // `burst` at once, every burst / rate
};

struct ArrivalOptions {
  ArrivalKind kind = ArrivalKind::kPoisson;
  double rate = 0;  // requests a second; 0: all are due at the start
  std::uint32_t burst = 10;
  std::uint64_t seed = 0;
};

class Arrivals {
 public:
  explicit Arrivals(const ArrivalOptions& options) : options_(options) {}

  // Returns when the next request is due; times never go back.
  std::int64_t next_ns();

 private:
  double gap_s() const;  // between the last arrival and the next

  ArrivalOptions options_;
  std::uint64_t count_ = 0;
  double at_s_ = 0;
};

}  // namespace pagoda::loadgen
