// The sampler on one thread: 256 rows of 50,000 logits, as one step of a full batch has them.
//   sampler_bench --benchmark_filter=top_p
// Rows are
//   peaked  as a language model's: a bulk around 0 (deviation 2.5) and 100 candidates that fall
//           from 17 in steps of 0.12
//   flat    a bulk alone, of deviation 1: nine tenths of the mass are 30,000 tokens
#include <benchmark/benchmark.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/sampler.h"
#include "kernels/select.h"

namespace pagoda::engine {
namespace {

constexpr std::size_t kRows = 256;
constexpr std::size_t kVocabulary = 50000;

// Normally distributed, by Box and Muller's method.
float normal(std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(1 - random_unit(1, 0, index)));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * random_unit(1, 1, index)));
}

std::vector<float> make_rows(bool peaked) {
  std::vector<float> rows(kRows * kVocabulary);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = normal(i) * (peaked ? 2.5f : 1.0f);
  for (std::size_t row = 0; peaked && row < kRows; ++row) {
    for (std::size_t i = 0; i < 100; ++i) {
      const std::size_t id = random_bits(2, row, i) % kVocabulary;
      rows[row * kVocabulary + id] = 17.0f - 0.12f * static_cast<float>(i);
    }
  }
  return rows;
}

const std::vector<float>& rows_of(bool peaked) {
  static const std::vector<float> kPeaked = make_rows(true);
  static const std::vector<float> kFlat = make_rows(false);
  return peaked ? kPeaked : kFlat;
}

// Time is per step: all rows once.
void bench_step(benchmark::State& state, const kernels::KernelSet& set,
                const SamplingParams& options, bool peaked) {
  const std::vector<float>& rows = rows_of(peaked);
  std::vector<TokenId> prompt;
  for (std::uint32_t i = 0; i < 1000; ++i) prompt.emplace_back(i * 37 % kVocabulary);
  const SamplingState request(options, prompt);
  SamplerScratch scratch(set, kVocabulary);
  std::uint64_t position = 0;
  for (auto _ : state) {
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::span<const float> logits(rows.data() + row * kVocabulary, kVocabulary);
      benchmark::DoNotOptimize(sample(logits, request, scratch, position++).value().token);
    }
  }
}

const int kRegistered = [] {
  const std::vector<std::pair<std::string, SamplingParams>> requests = {
      {"greedy", {}},
      {"temperature", {.temperature = 1.0f}},
      {"top_p_0.9", {.temperature = 1.0f, .top_p = 0.9f}},
      {"top_p_0.3", {.temperature = 1.0f, .top_p = 0.3f}},
      {"top_k_50", {.temperature = 1.0f, .top_k = 50, .top_p = 0.9f}},
      {"penalties", {.temperature = 1.0f, .top_p = 0.9f, .repetition_penalty = 1.1f}},
      {"logprobs_20", {.logprobs = 20}},
  };
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    for (const auto& [name, options] : requests) {
      for (const bool peaked : {true, false}) {
        const std::string title = name + (peaked ? "/peaked/" : "/flat/") + std::string(set->name);
        benchmark::RegisterBenchmark(title.c_str(), bench_step, std::ref(*set), options, peaked)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  return 0;
}();

}  // namespace
}  // namespace pagoda::engine
