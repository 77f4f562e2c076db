// Readers for the oracle's files in tests/data/logits; formats in the README there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/token_id.h"

namespace pagoda::model {

// All logits of a small model (tiny_*.bin).
struct FullLogits {
  std::vector<TokenId> tokens;
  std::vector<float> logits;  // [tokens, vocabulary]
};

// The head and the bucketed tail of a real model's distributions (*_wikitext2.bin).
struct LogitDigest {
  struct Position {
    std::vector<std::uint32_t> top;      // ids by falling probability
    std::vector<float> log_probability;  // of these ids
    std::vector<float> tail;             // probability of the other ids, by id % buckets
  };
  std::vector<std::vector<TokenId>> windows;
  std::vector<std::vector<Position>> positions;  // for each window
};

// These stop the program with a message when the file is not as described.
FullLogits read_full_logits(const std::string& name);

// The divergence (Kullback-Leibler, nats) of our distributions from the oracle's, of each position
// and on average.
std::vector<double> kl_of_rows(const FullLogits& oracle, const std::vector<float>& ours);
double mean_kl(const FullLogits& oracle, const std::vector<float>& ours);
LogitDigest read_logit_digest(const std::string& name);

struct Agreement {
  bool same_top;
  double kl;  // nats, from the oracle's distribution to ours, by the README's estimate
};
Agreement compare(const LogitDigest::Position& oracle, const float* logits, std::size_t vocabulary);

}  // namespace pagoda::model
