// pagoda bench paging: what fits into the same memory, in pages and in slabs.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/decode_traffic.h"
#include "base/byte_size.h"
#include "base/random.h"
#include "bench/bench_engine.h"
#include "bench/benchmarks.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

constexpr std::uint64_t kContextDefault = 2048;
constexpr std::uint64_t kSlabsDefault = 4;

// The counts of sequences and blocks over the steps of one side.
struct Watched {
  std::uint64_t sequences_most = 0;
  std::uint64_t blocks_most = 0;     // held by running sequences
  std::uint64_t sequence_steps = 0;  // sums over steps
  std::uint64_t block_steps = 0;
};

struct PagingSide {
  std::uint64_t block_tokens = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;
  Watched watched;
  double seconds = 0;
  std::uint64_t preemptions = 0;
  std::vector<std::vector<TokenId>> answers;
};

std::vector<engine::Request> make_requests(const BenchPagingOptions& options,
                                           std::uint32_t vocabulary) {
  const std::uint64_t lengths = options.prompt_tokens_max - options.prompt_tokens_min + 1;
  std::vector<engine::Request> requests;
  for (std::uint32_t i = 0; i < options.requests; ++i) {
    const std::uint64_t tokens = options.prompt_tokens_min + random_bits(1, 1, i) % lengths;
    requests.push_back(fixed_request(random_prompt(vocabulary, tokens, 2 + i), options.new_tokens));
  }
  return requests;
}

// All requests at once: the engine runs as many together as its memory holds.
Result<PagingSide> measure(const app::LoadedModel& model, const BenchPagingOptions& options,
                           const BenchRun& run, const engine::BackendOptions& backend,
                           const std::string& label) {
  Watched watched;  // by the engine's thread, until the engine is gone
  PagingSide side;
  {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<BenchEngine> engine,
        BenchEngine::create(model, run, backend, [&](const engine::Snapshot& now) {
          const std::uint64_t held = now.blocks_all - now.blocks_free - now.blocks_idle;
          watched.sequences_most = std::max(watched.sequences_most, now.sequences_running);
          watched.blocks_most = std::max(watched.blocks_most, held);
          watched.sequence_steps += now.sequences_running;
          watched.block_steps += held;
        }));
    RETURN_IF_ERROR(app::check_context(
        fmt::format("`prompt_tokens_max={}` and `new_tokens={}`", options.prompt_tokens_max,
                    options.new_tokens),
        std::uint64_t{options.prompt_tokens_max} + options.new_tokens, engine->context_tokens()));
    side.block_tokens = backend.block_tokens;
    side.block_bytes = engine->backend().page_layout().page_bytes();
    side.blocks = engine->backend().kv_bytes() / side.block_bytes;
    std::vector<PendingRequest> pending;
    for (engine::Request& request : make_requests(options, engine->vocabulary())) {
      ASSIGN_OR_RETURN(PendingRequest one, engine->submit(std::move(request)));
      pending.push_back(std::move(one));
    }
    terminal::ProgressBar progress(label, "requests", run.clock());
    for (const PendingRequest& one : pending) {
      ASSIGN_OR_RETURN(TimedOutput answer, engine->finish(one));
      side.seconds = std::max(side.seconds, answer.record.total_s());
      side.preemptions += answer.record.preemptions;
      side.answers.push_back(std::move(answer.tokens));
      progress.show(side.answers.size(), pending.size());
    }
  }
  side.watched = watched;
  return side;
}

terminal::BenchReport report_of(const BenchPagingOptions& options, const BenchRun& run,
                                std::uint64_t context, std::uint64_t kv_bytes,
                                const PagingSide& paged, const PagingSide& slabs) {
  terminal::BenchReport report("paging", {{"memory", "memory"},
                                          {"block_tokens", "tokens a block"},
                                          {"blocks", "blocks"},
                                          {"sequences_at_once", "sequences at once"},
                                          {"bytes_held_most", "most bytes held"},
                                          {"bytes_per_sequence", "bytes a sequence"},
                                          {"seconds", "seconds", 2},
                                          {"tokens_per_second", "tok/s", 1},
                                          {"preemptions", "preemptions"}});
  run.add_settings(report);
  report.add_setting("kv_bytes", kv_bytes);
  report.add_setting("max_model_len", context);
  report.add_setting("requests", options.requests);
  report.add_setting("prompt_tokens",
                     fmt::format("{} to {}", options.prompt_tokens_min, options.prompt_tokens_max));
  report.add_setting("new_tokens", options.new_tokens);
  report.add_setting("max_num_seqs", options.sequences_max);
  for (const auto& [name, side] : {std::pair{"slabs", &slabs}, {"pages", &paged}}) {
    const std::uint64_t sequence_steps = std::max<std::uint64_t>(side->watched.sequence_steps, 1);
    report.add_row({name, side->block_tokens, side->blocks, side->watched.sequences_most,
                    side->watched.blocks_most * side->block_bytes,
                    side->watched.block_steps * side->block_bytes / sequence_steps, side->seconds,
                    static_cast<double>(options.requests) * options.new_tokens / side->seconds,
                    side->preemptions});
  }
  const double sequences = static_cast<double>(paged.watched.sequences_most) /
                           static_cast<double>(slabs.watched.sequences_most);
  report.add_figure("sequences_ratio", sequences,
                    fmt::format("{:.1f}x as many sequences at once, same tokens", sequences));
  const double throughput = slabs.seconds / paged.seconds;
  report.add_figure("throughput_ratio", throughput,
                    fmt::format("{:.2f}x the tokens per second", throughput));
  return report;
}

}  // namespace

Result<terminal::BenchReport> bench_paging(const BenchPagingOptions& options, const BenchRun& run) {
  if (options.prompt_tokens_min > options.prompt_tokens_max) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`prompt_tokens_min`: {} is above `prompt_tokens_max={}`",
                             options.prompt_tokens_min, options.prompt_tokens_max)};
  }
  ASSIGN_OR_RETURN(engine::BackendOptions backend, run.backend_options(options.sequences_max));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  const model::Config& config = model->config();
  backend.context_tokens = options.context_tokens > 0
                               ? options.context_tokens
                               : std::min<std::uint64_t>(config.context, kContextDefault);
  backend.kv_bytes = options.kv_bytes.value_or(kSlabsDefault * backend.context_tokens *
                                               app::kv_bytes_per_token(config, run.kv_elements()));
  backend.prefix_caching = false;
  // A slab is a block as long as the longest context: the same engine serves both.
  backend.block_tokens = static_cast<std::uint32_t>(backend.context_tokens);
  ASSIGN_OR_RETURN(const PagingSide slabs, measure(*model, options, run, backend, "slabs"));
  backend.block_tokens = options.block_size;
  ASSIGN_OR_RETURN(const PagingSide paged, measure(*model, options, run, backend, "pages"));
  if (paged.answers != slabs.answers) {
    return Error{ErrorCode::kCorrupt, "the outputs in pages and in slabs differ"};
  }
  return report_of(options, run, backend.context_tokens, *backend.kv_bytes, paged, slabs);
}

}  // namespace pagoda::bench
