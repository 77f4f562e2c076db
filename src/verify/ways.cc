#include "verify/ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "app/tier_set.h"
#include "base/random.h"
#include "speculate/recorded_drafter.h"

namespace pagoda::verify {
namespace {

namespace fs = std::filesystem;
using Rounds = std::vector<std::vector<VerifiedOutput>>;

constexpr std::uint32_t kChunkTokens = 7;
constexpr std::uint32_t kForks = 3;
constexpr std::int64_t kStoreNs = 30'000'000'000;

std::uint64_t prompt_tokens_of(const std::vector<engine::Request>& questions) {
  std::uint64_t tokens = 0;
  for (const engine::Request& question : questions) tokens += question.prompt.size();
  return tokens;
}

template <class Field>
std::uint64_t sum_over(const std::vector<VerifiedOutput>& answers, const Field& field) {
  std::uint64_t sum = 0;
  for (const VerifiedOutput& answer : answers) sum += field(answer.record);
  return sum;
}

Result<WayResult> go_cold(const VerifyHarness& harness) {
  engine::BackendOptions options = harness.backend_options();
  options.prefix_caching = false;
  ASSIGN_OR_RETURN(const auto engine, harness.start("cold", options));
  ASSIGN_OR_RETURN(std::vector<VerifiedOutput> answers,
                   engine->ask_one_by_one(harness.questions()));
  return WayResult{{std::move(answers)},
                   fmt::format("each alone, nothing cached; {}", engine->backend().device_name()),
                   {}};
}

Result<WayResult> go_warm(const VerifyHarness& harness) {
  const std::vector<engine::Request> questions = harness.questions();
  ASSIGN_OR_RETURN(const auto engine, harness.start("warm", harness.backend_options()));
  Rounds rounds(2);
  for (std::vector<VerifiedOutput>& round : rounds) {
    ASSIGN_OR_RETURN(round, engine->ask_one_by_one(questions));
  }
  const std::uint64_t cached =
      sum_over(rounds[1], [](const auto& record) { return record.prompt_tokens_cached; });
  if (cached == 0) return WayResult{std::move(rounds), {}, "nothing was found in the cache"};
  return WayResult{
      std::move(rounds),
      fmt::format("{} of {} prompt tokens from the cache", cached, prompt_tokens_of(questions)),
      {}};
}

Result<WayResult> go_batched(const VerifyHarness& harness) {
  const std::vector<engine::Request> questions = harness.questions();
  ASSIGN_OR_RETURN(const auto engine, harness.start("batched", harness.backend_options()));
  ASSIGN_OR_RETURN(Rounds rounds, engine->ask_at_once(questions));
  return WayResult{std::move(rounds), fmt::format("{} at once", questions.size()), {}};
}

Result<WayResult> go_chunked(const VerifyHarness& harness) {
  engine::BackendOptions options = harness.backend_options();
  options.scheduler.sequences_max = kChunkTokens - 1;
  options.scheduler.batched_tokens_max = kChunkTokens;
  ASSIGN_OR_RETURN(const auto engine, harness.start("chunked", options));
  ASSIGN_OR_RETURN(Rounds rounds, engine->ask_at_once(harness.questions()));
  return WayResult{std::move(rounds), fmt::format("steps of at most {} tokens", kChunkTokens), {}};
}

// Greedy outputs are the same whichever choice they are.
Result<WayResult> go_forked(const VerifyHarness& harness) {
  std::vector<engine::Request> questions = harness.questions();
  for (engine::Request& question : questions) {
    if (engine::is_greedy(question.sampling)) question.sampling.n = kForks;
  }
  ASSIGN_OR_RETURN(const auto engine, harness.start("forked", harness.backend_options()));
  ASSIGN_OR_RETURN(Rounds rounds, engine->ask_at_once(questions));
  return WayResult{std::move(rounds), fmt::format("n = {}, prompt tokens shared", kForks), {}};
}

// Drafts are the outputs themselves, of which every fifth token is wrong.
Result<WayResult> go_drafted(const VerifyHarness& harness) {
  const std::vector<engine::Request> questions = harness.questions();
  engine::BackendOptions options = harness.backend_options();
  std::vector<VerifiedOutput> known;
  {
    ASSIGN_OR_RETURN(const auto engine, harness.start("undrafted", options));
    ASSIGN_OR_RETURN(known, engine->ask_one_by_one(questions));
  }
  speculate::RecordedDrafter drafter({.wrong = 0.2, .vocabulary = 2, .seed = 1});
  for (std::size_t i = 0; i < questions.size(); ++i) {
    std::vector<TokenId> sequence = questions[i].prompt;
    for (const engine::TokenScore& score : known[i].scores) sequence.push_back(score.chosen.token);
    drafter.record(std::move(sequence));
  }
  options.drafter = &drafter;
  ASSIGN_OR_RETURN(const auto engine, harness.start("drafted", options));
  ASSIGN_OR_RETURN(Rounds rounds, engine->ask_at_once(questions));
  const auto count = [&](std::uint64_t engine::DraftCounts::*field) {
    return sum_over(rounds[0], [&](const auto& record) { return record.drafts.*field; });
  };
  const std::uint64_t tokens = count(&engine::DraftCounts::tokens);
  const std::uint64_t accepted = count(&engine::DraftCounts::accepted);
  if (tokens == 0) return WayResult{std::move(rounds), {}, "nothing is drafted here"};
  return WayResult{
      std::move(rounds), fmt::format("{} of {} draft tokens accepted", accepted, tokens), {}};
}

// A pool that holds all prompts, but not all sequences: it shrinks until one is preempted.
Result<WayResult> go_preempted(const VerifyHarness& harness) {
  const std::vector<engine::Request> questions = harness.questions();
  const engine::BackendOptions options = harness.backend_options();
  std::uint64_t block_bytes = 0;
  std::uint64_t groups = 0;
  {
    ASSIGN_OR_RETURN(const auto backend, harness.create_backend("preempted", options));
    block_bytes = backend->page_layout().page_bytes();
    groups = backend->groups().size();
  }
  std::uint64_t prompts = 0;
  for (const engine::Request& question : questions) {
    const std::uint64_t tokens = question.prompt.size();
    const std::uint64_t kept =
        tokens - options.kv_policy.tokens_dropped({tokens, tokens}, options.block_tokens);
    prompts += (kept + options.block_tokens - 1) / options.block_tokens;
  }
  WayResult shown;
  for (std::uint64_t spare = questions.size(); spare-- > 0;) {
    const auto blocks = static_cast<std::uint32_t>((prompts + spare) * groups);
    Result<std::unique_ptr<engine::Backend>> backend =
        harness.create_backend("preempted", options, block_bytes, blocks);
    if (!backend.ok()) break;  // too small for the longest question
    const auto engine = harness.start_over(std::move(backend).value());
    ASSIGN_OR_RETURN(Rounds rounds, engine->ask_at_once(questions));
    const std::uint64_t preemptions =
        sum_over(rounds[0], [](const auto& record) { return record.preemptions; });
    shown.rounds.push_back(std::move(rounds[0]));
    if (preemptions == 0) continue;
    shown.evidence = fmt::format("{} times, with {} blocks", preemptions, blocks);
    return shown;
  }
  shown.lacking = "no pool was found in which a sequence had to be preempted";
  return shown;
}

Result<WayResult> go_with_threads(const VerifyHarness& harness, const std::string& way,
                                  std::uint32_t threads) {
  engine::BackendOptions options = harness.backend_options();
  options.threads = threads;
  ASSIGN_OR_RETURN(const auto engine, harness.start(way, options));
  if (engine->backend().threads() != threads) return WayResult{{}, {}, "a GPU computes"};
  ASSIGN_OR_RETURN(Rounds rounds, engine->ask_at_once(harness.questions()));
  return WayResult{std::move(rounds), engine->backend().device_name(), {}};
}

// Removed with everything in it.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& parent) {
    std::error_code none;  // becomes an error where the folder is used
    path_ = (parent.empty() ? fs::temp_directory_path(none) : fs::path(parent)) /
            fmt::format("pagoda-verify-{:016x}", fresh_seed());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

// Everything that was computed is written as soon as the stores have the time.
Status wait_for_writes(const VerifyHarness& harness, kv::PageStore& store) {
  const std::int64_t end_ns = harness.clock().now_ns() + kStoreNs;
  std::uint64_t written = 0;
  int quiet = 0;  // looks at which nothing had changed
  while (quiet < 10 && harness.clock().now_ns() < end_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const kv::StoreStats stats = store.stats();
    const bool still = stats.pages_written == written && stats.requests_queued == 0;
    quiet = still ? quiet + 1 : 0;
    written = stats.pages_written;
  }
  return store.flush(kStoreNs);
}

// Asks, waits until the pages are in the tier, empties the pool, and asks again. Pages are private
// to an owner whom nobody else has, and go with it: a remote store may be others' too.
Result<WayResult> go_through(const VerifyHarness& harness, const std::string& way,
                             app::TierSetOptions flags) {
  if (harness.options().device.ranks > 1) {
    return WayResult{{}, {}, "tiers hold the pages of one rank"};
  }
  std::vector<engine::Request> questions = harness.questions();
  for (engine::Request& question : questions) question.cache_salt = "verify";
  engine::BackendOptions options = harness.backend_options();
  options.hash_blocks = true;
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Backend> backend, harness.create_backend(way, options));
  const std::uint64_t page_bytes = backend->page_layout().page_bytes();
  const std::string size =
      std::to_string(std::max<std::uint64_t>(1024 * (page_bytes + 16384), std::uint64_t{64} << 20));
  if (flags.host_size != "0") flags.host_size = size;
  flags.disk_size = size;
  flags.write = engine::WriteMode::kThrough;
  flags.load = engine::LoadMode::kAlways;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<app::TierSet> tier_set,
      app::TierSet::open(flags, {.page_bytes = page_bytes,
                                 .block_tokens = backend->page_layout().block_tokens,
                                 .rows_id = backend->rows_id(),
                                 .model_parts = harness.model_parts(),
                                 .create_copier = [&] { return backend->create_page_copier(); }}));
  if (tier_set == nullptr) return WayResult{{}, {}, "it cannot be used here"};
  kv::PageStore& store = *tier_set->stores().front();
  kv::OwnerTag owner;
  for (std::byte& byte : owner.bytes) byte = static_cast<std::byte>(fresh_seed() & 0xFFU);
  engine::TierOptions tiers = tier_set->options();
  tiers.owner_tag = [owner](kv::OwnerId) { return owner; };
  tiers.is_model_unchanged = {};  // the space is this run's own
  backend->use_tiers(tiers);
  WayResult shown;
  shown.rounds.resize(2);
  {
    const auto engine = harness.start_over(std::move(backend));
    engine->engine().set_space(kv::space_id(fmt::format("verify {:016x}", fresh_seed())));
    ASSIGN_OR_RETURN(shown.rounds[0], engine->ask_one_by_one(questions));
    const Status written = wait_for_writes(harness, store);
    // A store that was asked for by name is not just lacking.
    if (!written.ok() && !flags.remote.empty()) return written.error();
    if (!written.ok()) {
      shown.rounds.resize(1);
      shown.lacking = written.error().message;
      return shown;
    }
    engine->engine().post([](kv::Cache& cache) { cache.clear(); });
    ASSIGN_OR_RETURN(shown.rounds[1], engine->ask_one_by_one(questions));
  }
  const std::uint64_t loaded =
      sum_over(shown.rounds[1], [](const auto& record) { return record.load.tokens_loaded(); });
  const std::string condition = store.stats().condition;
  const Result<kv::Removal> removed = store.remove(owner);
  if (loaded == 0) {
    shown.lacking = condition.empty() ? "no page came back" : condition;
  } else {
    shown.evidence =
        fmt::format("{} of {} prompt tokens loaded", loaded, prompt_tokens_of(questions));
    if (!removed.ok()) shown.evidence += fmt::format("; not removed: {}", removed.error().message);
  }
  return shown;
}

Result<WayResult> go_host(const VerifyHarness& harness) {
  app::TierSetOptions flags;
  flags.host_size = "1";  // a size comes when pages are known
  flags.disk = "off";
  return go_through(harness, "host tier", flags);
}

Result<WayResult> go_disk(const VerifyHarness& harness) {
  const ScratchFolder folder(harness.options().folder);
  app::TierSetOptions flags;
  flags.disk = folder.path();
  return go_through(harness, "disk tier", flags);
}

Result<WayResult> go_remote(const VerifyHarness& harness) {
  if (harness.options().remote.empty()) return WayResult{{}, {}, "no remote store was given"};
  app::TierSetOptions flags;
  flags.disk = "off";
  flags.remote = harness.options().remote;
  flags.remote_ttl_s = 600;
  return go_through(harness, "remote tier", flags);
}

}  // namespace

std::vector<Way> verified_ways(const VerifyHarness& harness) {
  std::vector<Way> ways = {{"cold", go_cold},           {"warm", go_warm},
                           {"batched", go_batched},     {"chunked", go_chunked},
                           {"preempted", go_preempted}, {"forked", go_forked},
                           {"drafted", go_drafted},     {"host tier", go_host},
                           {"disk tier", go_disk},      {"remote tier", go_remote}};
  if (harness.options().device.kind == app::DeviceKind::kCuda) {
    ways.push_back({"threads", [](const VerifyHarness&) -> Result<WayResult> {
                      return WayResult{{}, {}, "a GPU computes"};
                    }});
    return ways;
  }
  for (const std::uint32_t threads : {1u, 2u, 3u, 5u, 8u}) {
    const std::string name = fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
    ways.push_back({name, [name, threads](const VerifyHarness& each) {
                      return go_with_threads(each, name, threads);
                    }});
  }
  return ways;
}

}  // namespace pagoda::verify
