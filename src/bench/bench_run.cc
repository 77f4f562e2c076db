#include "bench/bench_run.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "app/kv_element.h"
#include "cli/kv_eviction.h"
#include "cli/options.h"
#include "kernels/select.h"
#include "model/decoder.h"

namespace pagoda::bench {
namespace {

constexpr int kInterrupted = 130;  // what shells expect after Ctrl-C
constexpr std::uint32_t kCountMax = 1u << 20;

int run_benchmark(const BenchCommand& bench, const BenchOptions& options,
                  const std::function<Result<terminal::BenchReport>(const BenchRun&)>& benchmark) {
  const Result<const kernels::KernelSet*> kernels = kernels::select_set();
  if (!kernels.ok()) {
    cli::print_error(kernels.error().message);
    return 1;
  }
  const BenchRun run(*kernels.value(), options);
  const Result<terminal::BenchReport> report = benchmark(run);
  if (run.interrupted()) {
    cli::print_error("interrupted");
    return kInterrupted;
  }
  if (!report.ok()) {
    cli::print_error(report.error().message);
    return report.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  const terminal::BenchMachine machine = terminal::describe_machine(run.kernels());
  fmt::print("{}", options.json ? report.value().json(machine, bench.command_line).dump(2) + "\n"
                                : report.value().text(machine, bench.command_line));
  std::fflush(stdout);
  return 0;
}

}  // namespace

void add_machine_options(CLI::App& command, BenchOptions& options) {
  command.add_option("-t,--threads", options.threads, "threads (default: usable cores)")
      ->check(CLI::Range(1u, 1024u));
  app::add_kv_element_option(command, options.kv_element);
  command.add_flag("--json", options.json, "one JSON object on stdout instead of a table");
}

void add_model_options(CLI::App& command, BenchOptions& options) {
  cli::add_model_option(command, options.model);
  cli::add_kv_eviction_option(command, options.kv_eviction);
  add_machine_options(command, options);
}

void add_engine_options(CLI::App& command, BenchOptions& options) {
  add_model_options(command, options);
  options.device.kind = app::DeviceKind::kAuto;
  app::add_device_options(command, options.device);
}

void add_repeats_option(CLI::App& command, BenchOptions& options) {
  command
      .add_option("--repeats", options.repeats,
                  fmt::format("measurements; medians are shown (default {})", options.repeats))
      ->check(CLI::Range(1u, 1000u));
}

void add_batched_tokens_option(CLI::App& command, BenchOptions& options) {
  command
      .add_option(
          "--max-num-batched-tokens", options.batched_tokens_max,
          fmt::format("tokens computed in one step (default {})", options.batched_tokens_max))
      ->check(CLI::Range(1u, 1u << 16));
}

CLI::Option* add_count_option(CLI::App& command, const std::string& name, std::uint32_t& count,
                              const std::string& description, std::uint32_t least) {
  return command.add_option(name, count, fmt::format("{} (default {})", description, count))
      ->check(CLI::Range(least, kCountMax));
}

Status BenchRun::check_interrupt() const {
  if (interrupted()) return Error{ErrorCode::kExhausted, "interrupted"};
  return ok_status();
}

Result<std::unique_ptr<app::LoadedModel>> BenchRun::load_model() const {
  if (options_.device.kind == app::DeviceKind::kCpu) {
    RETURN_IF_ERROR(model::check_kv_element(options_.kv_element));
  }
  return app::LoadedModel::load(options_.model, kernels_);
}

Result<engine::CpuBackendOptions> BenchRun::backend_options(std::uint32_t sequences_max) const {
  if (options_.batched_tokens_max < sequences_max) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--max-num-batched-tokens: {} are fewer than the {} sequences that "
                             "run at once, each of which has a token in a step",
                             options_.batched_tokens_max, sequences_max)};
  }
  engine::CpuBackendOptions backend;
  backend.threads = options_.threads;
  backend.kv_element = options_.kv_element;
  backend.kv_eviction = options_.kv_eviction;
  backend.scheduler.sequences_max = sequences_max;
  backend.scheduler.batched_tokens_max = options_.batched_tokens_max;
  backend.model_name = options_.model;
  return backend;
}

kv::memory::Element BenchRun::kv_element() const {
  return kv_element_.value_or(options_.kv_element.value_or(kernels_.kv_element));
}

void BenchRun::note_backend(const engine::Backend& backend) const {
  device_name_ = backend.device_name();
  kv_element_ = backend.page_layout().element;
}

void BenchRun::add_settings(terminal::BenchReport& report) const {
  report.add_setting("model", std::filesystem::path(options_.model).filename().string());
  if (!device_name_.empty()) report.add_setting("device", device_name_);
  report.add_setting("threads", options_.threads);
  report.add_setting("kv_cache_dtype", app::kv_element_name(kv_element()));
  report.add_setting("kv_eviction", options_.kv_eviction->name);
}

void set_benchmark(CLI::App& command, const BenchCommand& bench,
                   std::shared_ptr<const BenchOptions> options,
                   std::function<Result<terminal::BenchReport>(const BenchRun&)> benchmark) {
  command.callback([bench, options = std::move(options), benchmark = std::move(benchmark)] {
    bench.exit_status = run_benchmark(bench, *options, benchmark);
  });
}

Status check_context(const std::string& made_of, std::uint64_t tokens,
                     std::uint64_t context_tokens) {
  if (tokens <= context_tokens) return ok_status();
  return Error{ErrorCode::kOutOfRange, fmt::format("{} make {} tokens, but the context holds {}",
                                                   made_of, tokens, context_tokens)};
}

}  // namespace pagoda::bench
