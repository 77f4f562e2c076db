// Sums a load up: distributions, rates, goodput, errors by kind.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "loadgen/run_load.h"

namespace pagoda::loadgen {

// Seconds. Percentiles are nearest ranks: times that were measured, not computed between two.
struct Distribution {
  std::uint64_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

Distribution distribution_of(std::vector<float> samples);

// The latencies up to which a request counts as good. Unset: any.
struct Slo {
  std::optional<double> ttft_s = {};  // from when the request should have been sent
  std::optional<double> itl_s = {};   // mean time from one token to the next
};

bool meets_slo(const Outcome& outcome, const Slo& slo);

// Jain's index of fairness, (sum x)^2 / (n sum x^2): 1 when all are equal, 1 / n when one has all.
double fairness(const std::vector<double>& shares);

struct Summary {
  // From when a request should have been sent, and from when it was. Of answered requests.
  Distribution ttft_scheduled;
  Distribution ttft_sent;
  Distribution e2e_scheduled;
  Distribution e2e_sent;
  Distribution itl;
  Distribution late;  // sent after it was due; of all requests

  std::uint64_t requests = 0;  // that were sent
  std::array<std::uint64_t, kOutcomeKinds> by_kind{};
  std::map<int, std::uint64_t> by_status;  // of those whose kind is kStatus
  std::uint64_t errors = 0;

  std::uint64_t output_tokens = 0;  // of answered requests, as the other sums
  std::optional<std::uint64_t> prompt_tokens;
  std::optional<std::uint64_t> cached_tokens;
  std::uint64_t answers_different = 0;
  double stream_fairness = 1;  // of tokens a second, from when sent to the end

  double seconds = 0;
  double requests_per_s = 0;  // answered
  double output_tokens_per_s = 0;
  double goodput_per_s = 0;  // answered within the objective
  std::uint64_t good = 0;
};

Summary summarise(const LoadResult& result, const Slo& slo);

}  // namespace pagoda::loadgen
