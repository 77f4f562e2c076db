// How far the distribution of one run is from that of another, row by row.
//
//   KL = sum over tokens of p * (log p - log q)    p: reference, q: measured; in nats
//
// Computed in double from fp32 logits, over the whole vocabulary. "Same top" says that both have
// the same best token; ties go to the lowest id, as in sampling.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pagoda::eval {

struct RowDivergence {
  double kl = 0;
  bool same_top = false;
};

// Both rows have the same tokens, at least one.
RowDivergence compare_rows(std::span<const float> reference, std::span<const float> measured);

// Over all rows. p99 is the smallest value that 99 of 100 rows do not exceed.
struct Divergence {
  std::uint64_t rows = 0;
  double kl_mean = 0;
  double kl_p99 = 0;
  double kl_max = 0;
  double same_top = 0;  // share of rows, 0 to 1
};

Divergence summarise(std::span<const RowDivergence> rows);

}  // namespace pagoda::eval
