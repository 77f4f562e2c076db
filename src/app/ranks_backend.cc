#include "app/ranks_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "app/rank_setup.h"
#include "base/thread_pool.h"
#include "model/division.h"
#include "model/kv_groups.h"
#include "ranks/rank_group.h"
#include "ranks/rank_job.h"

namespace pagoda::app {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

RankSetup setup_of(const DeviceOptions& device, const LoadedModel& model,
                   const kernels::KernelSet& kernels, const engine::BackendOptions& options) {
  const std::size_t cores = std::max<std::size_t>(1, usable_cores() / device.ranks);
  return {
      .model = model.source(),
      .load = model.load_options(),
      .kernel_set = std::string(kernels.name),
      .kv_cache_dtype = options.kv_cache_dtype,
      .block_tokens = options.block_tokens,
      .rows_max = options.scheduler.batched_tokens_max,
      .threads = options.threads > 0 ? options.threads : cores,
      .limit = std::chrono::milliseconds(static_cast<std::int64_t>(device.rank_timeout_s * 1e3))};
}

// Every rank must have loaded the model that this program has opened, and divided it as planned.
Status check_ready(const LoadedModel& model, const kernels::KernelSet& kernels,
                   const RankSetup& setup, std::uint32_t rank, std::uint32_t ranks,
                   const RankReady& ready) {
  const std::string mine = identity_of(model.file(), model.config(), kernels, setup);
  if (ready.identity != mine) {
    return Error{ErrorCode::kCorrupt, fmt::format("rank {} has loaded {}, but this program {}",
                                                  rank, ready.identity, mine)};
  }
  const auto plan = model::Division(model.config(), rank, ranks)
                        .divide(model::plan_kv_groups(model.config(), kernels, setup.kv_cache_dtype,
                                                      setup.block_tokens));
  if (ready.facts.page_bytes == plan.layouts.front().page_bytes()) return ok_status();
  return Error{ErrorCode::kCorrupt,
               fmt::format("rank {} has pages of {} bytes, planned were {}", rank,
                           ready.facts.page_bytes, plan.layouts.front().page_bytes())};
}

}  // namespace

Result<std::unique_ptr<engine::Backend>> create_ranks_backend(
    const DeviceOptions& device, const LoadedModel& model, const kernels::KernelSet& kernels,
    const engine::BackendOptions& options) {
  if (device.kind == DeviceKind::kCuda) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("`tensor_parallel_size` {}: ranks compute on CPUs; use `device=cpu`",
                             device.ranks)};
  }
  RETURN_IF_ERROR(engine::RanksBackend::check(model.config(), options, device.ranks));
  ASSIGN_OR_RETURN(std::shared_ptr<ranks::RankJob> job,
                   ranks::RankJob::start({.ranks = device.ranks}));
  const RankSetup setup = setup_of(device, model, kernels, options);
  engine::LoadedRanks loaded = {.owner = job, .group = {}, .facts = {}, .threads = setup.threads};
  loaded.group = std::make_unique<ranks::RankGroup>(job->take_channels(), setup.limit,
                                                    [job = job.get()] { job->end(); });
  const std::string text = write_setup(setup);
  RETURN_IF_ERROR(
      loaded.group->send_to_all(ranks::MessageKind::kSetup, std::as_bytes(std::span(text))));
  for (std::uint32_t rank = 0; rank < device.ranks; ++rank) {
    ASSIGN_OR_RETURN(const std::span<const std::byte> answer,
                     loaded.group->receive(rank, ranks::MessageKind::kReady));
    ASSIGN_OR_RETURN(const RankReady ready, read_ready(text_of(answer)));
    RETURN_IF_ERROR(check_ready(model, kernels, setup, rank, device.ranks, ready));
    loaded.facts.push_back(ready.facts);
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<engine::RanksBackend> backend,
      engine::RanksBackend::create(model.config(), kernels, options, std::move(loaded)));
  return std::unique_ptr<engine::Backend>(std::move(backend));
}

}  // namespace pagoda::app
