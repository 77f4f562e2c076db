// How many tokens prompts and outputs have.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace pagoda::loadgen {

class Lengths {
 public:
  // Each number from `least` to `most` is as likely as the others.
  static Lengths between(std::uint32_t least, std::uint32_t most);
  // Logarithms are normal with deviation `sigma`, so that the mean is `mean`; what lies outside of
  // `least` to `most` is moved to the nearer of the two.
  static Lengths log_normal(double mean, double sigma, std::uint32_t least, std::uint32_t most);

  // "128" or "64-256". An error names the field.
  static Result<Lengths> parse(const std::string& text, const std::string& field);

  // A pure function of the three.
  std::uint32_t draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) const;

  std::string text() const;

 private:
  std::uint32_t least_ = 1;
  std::uint32_t most_ = 1;
  double mean_ = 0;  // 0: uniform
  double sigma_ = 0;
};

// Like the conversations of ShareGPT: log-normal with the means that the vLLM paper (Kwon et al.,
// 2023, figure 11) gives for that data set, 161 tokens in and 338 out. The spreads are chosen here,
// not measured. Bounds are those within which vLLM's own benchmark keeps its samples.
Lengths sharegpt_inputs();
Lengths sharegpt_outputs();

}  // namespace pagoda::loadgen
