// What a step costs beside the model: scheduler, cache, batch assembly and replies, with a runner
// that computes nothing. 256 answers run, 10,000 requests wait.
#include <benchmark/benchmark.h>

#include "engine/core.h"
#include "engine/null_runner.h"

namespace pagoda::engine {
namespace {

void bench_step(benchmark::State& state) {
  const auto running = static_cast<std::uint32_t>(state.range(0));
  const auto queued = static_cast<std::uint32_t>(state.range(1));
  CoreOptions options;
  options.limits = {.vocabulary = 50000, .context_tokens = 100000, .answers_max = running};
  options.scheduler.sequences_max = running;
  options.scheduler.batched_tokens_max = running + 256;
  options.requests_queued_max = queued + running;
  options.space = "null";
  kv::Cache cache({.blocks = 2'000'000});
  sched::TenantTable tenants;
  NullRunner runner;
  const SteadyClock clock;
  Core core(options, cache, tenants, runner, clock);
  const auto sink = std::make_shared<DeafSink>();
  for (std::uint32_t i = 0; i < running + queued; ++i) {
    Request request;
    for (std::uint32_t t = 0; t < 8; ++t) request.prompt.push_back(TokenId((i * 7 + t) % 50000));
    request.end.max_tokens = 99000;
    core.submit(RequestId(i), request, sink);
  }
  while (core.scheduler().running().size() < running) core.step();
  for (auto _ : state) core.step();
  state.counters["us_per_sequence"] = benchmark::Counter(
      running * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(bench_step)
    ->Name("step/running/queued")
    ->Args({1, 0})
    ->Args({64, 0})
    ->Args({256, 0})
    ->Args({256, 10000})
    ->Iterations(20000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pagoda::engine
