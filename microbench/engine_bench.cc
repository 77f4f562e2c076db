// What a step costs beside the model: scheduler, cache, batch assembly and replies, with a runner
// that computes nothing. 256 sequences run, 10,000 requests wait.
//   engine_bench --benchmark_filter=step      a step that admits nothing
//   engine_bench --benchmark_filter=traffic   steps with two requests that come and two that end,
//                                             without and with the cache's live curve
#include <benchmark/benchmark.h>

#include "base/random.h"
#include "engine/core.h"
#include "engine/null_runner.h"

namespace pagoda::engine {
namespace {

void bench_step(benchmark::State& state) {
  const auto running = static_cast<std::uint32_t>(state.range(0));
  const auto queued = static_cast<std::uint32_t>(state.range(1));
  CoreOptions options;
  options.limits = {.vocabulary = 50000, .context_tokens = 100000, .sequences_max = running};
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

// Sessions below one system prompt of 512 tokens: 512 of their own, which some request had before,
// and 96 new ones; 32 tokens of output.
Request next_turn(std::uint32_t number) {
  Request request;
  const auto session = static_cast<std::uint32_t>(random_bits(7, 0, number) % 2000);
  for (std::uint32_t t = 0; t < 512; ++t) request.prompt.push_back(TokenId(t));
  for (std::uint32_t t = 0; t < 512; ++t) {
    request.prompt.push_back(TokenId((1 + session * 17 + t) % 50000));
  }
  for (std::uint32_t t = 0; t < 96; ++t) {
    request.prompt.push_back(TokenId((number * 31 + t) % 50000));
  }
  request.end.max_tokens = 32;
  return request;
}

void bench_traffic(benchmark::State& state) {
  constexpr std::uint32_t kRunning = 64;
  CoreOptions options;
  options.limits = {.vocabulary = 50000, .context_tokens = 4096, .sequences_max = kRunning};
  options.scheduler.sequences_max = kRunning;
  options.scheduler.batched_tokens_max = 4096;
  options.space = "null";
  kv::CacheOptions sizes;
  sizes.blocks = static_cast<std::uint32_t>(state.range(0));
  sizes.live_curve = state.range(1) != 0;
  kv::Cache cache(sizes);
  sched::TenantTable tenants;
  NullRunner runner;
  const SteadyClock clock;
  Core core(options, cache, tenants, runner, clock);
  const auto sink = std::make_shared<DeafSink>();
  std::uint32_t number = 0;
  const auto step = [&] {
    while (core.requests_open() < kRunning) {
      core.submit(RequestId(number), next_turn(number), sink);
      ++number;
    }
    core.step();
  };
  for (int i = 0; i < 3000; ++i) step();
  const std::uint32_t before = number;
  for (auto _ : state) step();
  state.counters["requests_a_step"] =
      benchmark::Counter(static_cast<double>(number - before), benchmark::Counter::kAvgIterations);
  const kv::CurveStats curve = cache.curve().stats();
  state.counters["hit_rate"] = curve.blocks > 0 ? curve.own()->same.value_or(0) : 0;
}
BENCHMARK(bench_traffic)
    ->Name("traffic/blocks/curve")
    ->ArgsProduct({{4'000, 40'000, 400'000}, {0, 1}})
    ->Iterations(5000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pagoda::engine
