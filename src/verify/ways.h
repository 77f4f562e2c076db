// The ways to the same output: cold, from the cache, from a tier, in a batch, in chunks, …
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "verify/harness.h"
#include "verify/output.h"

namespace pagoda::verify {

// The outputs that a way gave. Each round answers all questions.
struct WayResult {
  std::vector<std::vector<VerifiedOutput>> rounds;
  std::string evidence;  // that it was this way: "96 of 392 prompt tokens were cached"
  std::string lacking;   // why this machine cannot go it, where it cannot
};

struct Way {
  std::string name;
  std::function<Result<WayResult>(const VerifyHarness&)> go;
};

// The first is the reference: each question alone, nothing cached. To add one: a row here.
std::vector<Way> verified_ways(const VerifyHarness& harness);

}  // namespace pagoda::verify
