#include "cli/bench_flags.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "app/machine.h"
#include "cli/device_flags.h"
#include "cli/kv_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "kernels/select.h"

namespace pagoda::cli {
namespace {

constexpr std::uint32_t kCountMax = 1u << 20;

int run_benchmark(
    const BenchCommand& bench, const bench::BenchOptions& options,
    const std::function<Result<terminal::BenchReport>(const bench::BenchRun&)>& benchmark) {
  const Result<const kernels::KernelSet*> kernels = kernels::select_set();
  if (!kernels.ok()) {
    print_error(kernels.error().message);
    return 1;
  }
  const bench::BenchRun run(*kernels.value(), options);
  const Result<terminal::BenchReport> report = benchmark(run);
  if (run.interrupted()) {
    print_error("interrupted");
    return kInterrupted;
  }
  if (!report.ok()) {
    print_error(report.error().message);
    return report.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  const terminal::BenchMachine machine = app::describe_machine(run.kernels());
  fmt::print("{}", options.json ? report.value().json_text(machine, bench.command_line)
                                : report.value().text(machine, bench.command_line));
  std::fflush(stdout);
  return 0;
}

}  // namespace

void add_machine_options(const CommandSpec& command, bench::BenchOptions& options) {
  command.add_option("-t,--threads", options.threads, "threads (default: usable cores)")
      .range(1u, 1024u);
  add_kv_cache_dtype_options(command, options.kv_cache_dtype);
  command.add_flag("--json", options.json, "one JSON object on stdout instead of a table");
}

void add_model_options(const CommandSpec& command, bench::BenchOptions& options) {
  add_model_option(command, options.model);
  add_kv_eviction_option(command, options.kv_eviction);
  add_machine_options(command, options);
}

void add_engine_options(const CommandSpec& command, bench::BenchOptions& options) {
  add_model_options(command, options);
  options.device.kind = app::DeviceKind::kAuto;
  add_device_options(command, options.device);
}

void add_repeats_option(const CommandSpec& command, bench::BenchOptions& options) {
  command
      .add_option("--repeats", options.repeats,
                  fmt::format("measurements; medians are shown (default {})", options.repeats))
      .range(1u, 1000u);
}

void add_batched_tokens_option(const CommandSpec& command, bench::BenchOptions& options) {
  command
      .add_option(
          "--max-num-batched-tokens", options.batched_tokens_max,
          fmt::format("tokens computed in one step (default {})", options.batched_tokens_max))
      .range(1u, 1u << 16);
}

Flag add_count_option(const CommandSpec& command, const std::string& name, std::uint32_t& count,
                      const std::string& description, std::uint32_t least) {
  return command.add_option(name, count, fmt::format("{} (default {})", description, count))
      .range(least, kCountMax);
}

void set_benchmark(const CommandSpec& command, const BenchCommand& bench,
                   std::shared_ptr<const bench::BenchOptions> options,
                   std::function<Result<terminal::BenchReport>(const bench::BenchRun&)> benchmark) {
  command.callback([bench, options = std::move(options), benchmark = std::move(benchmark)] {
    bench.exit_status = run_benchmark(bench, *options, benchmark);
  });
}

}  // namespace pagoda::cli
