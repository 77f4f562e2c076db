// The ways to the same answer: cold, from the cache, from a tier, in a batch, in chunks, …
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/verify_answer.h"
#include "cli/verify_bench.h"

namespace pagoda::cli {

// What a way gave. Each round answers all questions.
struct WayAnswers {
  std::vector<std::vector<VerifiedAnswer>> rounds;
  std::string evidence;  // that it was this way: "96 of 392 prompt tokens were cached"
  std::string lacking;   // why this machine cannot go it, where it cannot
};

struct Way {
  std::string name;
  std::function<Result<WayAnswers>(const VerifyBench&)> go;
};

// The first is the yardstick: each question alone, nothing cached. To add one: a row here.
std::vector<Way> verified_ways(const VerifyBench& bench);

}  // namespace pagoda::cli
