#include "engine/engine_ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/assert.h"
#include "store/disk/disk_store.h"
#include "store/host/host_store.h"

namespace pagoda::engine {
namespace {

constexpr std::uint64_t kPlentyOfBlocks = 400;

Answered take_answered(const TestSink& sink) {
  EXPECT_TRUE(sink.ended());
  return {sink.answers, sink.prompt_scores};
}

}  // namespace

WayRunner::WayRunner(const model::ModelParts& model, const kernels::KernelSet& kernels,
                     const BackendOptions& options)
    : config_(model.config), weights_(model.weights), kernels_(kernels), options_(options) {
  options_.kv_bytes = 1 << 20;
  options_.scheduler.sequences_max = 8;
  const auto probe = CpuBackend::create(config_, weights_, kernels_, options_);
  ASSERT(probe.ok(), "the model keeps this KV format");
  page_bytes_ = probe.value()->page_layout().page_bytes();
  groups_ = probe.value()->groups().size();
}

BackendOptions WayRunner::options_of(const EngineWay& way) const {
  BackendOptions options = options_;
  options.threads = way.threads;
  options.scheduler.batched_tokens_max = way.step_tokens;
  options.scheduler.sequences_max = std::min(8u, way.step_tokens);
  const std::uint64_t blocks = way.blocks > 0 ? way.blocks : kPlentyOfBlocks;
  options.kv_bytes = blocks * groups_ * page_bytes_;
  return options;
}

std::unique_ptr<Backend> WayRunner::create_for_store() const {
  BackendOptions options = options_of({});
  options.hash_blocks = true;
  return CpuBackend::create(config_, weights_, kernels_, options).value();
}

std::vector<Answered> WayRunner::alone(const std::vector<Request>& requests) const {
  BackendOptions options = options_of({});
  options.prefix_caching = false;
  EngineFixture fixture(config_, weights_, options, kernels_);
  std::vector<Answered> answers;
  for (const Request& request : requests) {
    Answered answered;
    for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
      Request one = request;
      one.sampling.n = 1;
      one.sampling.seed = seed_of_sequence(request.sampling.seed, i);
      const auto heard = fixture.submit(one);
      fixture.run();
      answered.outputs.push_back(heard->answers[0]);
      if (i == 0) answered.prompt_scores = heard->prompt_scores;
    }
    answers.push_back(std::move(answered));
  }
  return answers;
}

WayAnswers WayRunner::go(const EngineWay& way, const std::vector<Request>& requests) const {
  BackendOptions options = options_of(way);
  WayAnswers answers;
  options.on_deduplicate = [&answers](std::span<const std::byte> mine,
                                      std::span<const std::byte> existing) {
    ++answers.duplicates;
    EXPECT_TRUE(std::ranges::equal(mine, existing));
  };
  EngineFixture fixture(config_, weights_, options, kernels_, way.drafter);
  for (std::uint32_t round = 0; round < way.rounds; ++round) {
    std::vector<std::shared_ptr<TestSink>> heard;
    for (const Request& request : requests) {
      heard.push_back(fixture.submit(request));
      if (way.one_by_one) fixture.run();
    }
    fixture.run();
    std::vector<Answered>& outputs = answers.rounds.emplace_back();
    for (const auto& sink : heard) outputs.push_back(take_answered(*sink));
  }
  answers.counters = fixture.core().counters();
  answers.preemptions = answers.counters.preemptions;
  return answers;
}

WayAnswers WayRunner::expect(const EngineWay& way, const std::vector<Request>& requests,
                             const std::vector<Answered>& alone) const {
  WayAnswers answers = go(way, requests);
  for (const std::vector<Answered>& round : answers.rounds) {
    expect_same_outputs(round, alone, way.name);
  }
  return answers;
}

void expect_same_outputs(const std::vector<Answered>& got, const std::vector<Answered>& alone,
                         const std::string& where) {
  ASSERT_EQ(got.size(), alone.size()) << where;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_TRUE(same_scores(got[i].prompt_scores, alone[i].prompt_scores)) << where << ", " << i;
    ASSERT_EQ(got[i].outputs.size(), alone[i].outputs.size()) << where << ", " << i;
    for (std::size_t a = 0; a < alone[i].outputs.size(); ++a) {
      const TestSink::Given& mine = got[i].outputs[a];
      const TestSink::Given& own = alone[i].outputs[a];
      EXPECT_EQ(mine.tokens, own.tokens) << where << ", request " << i << ", output " << a;
      EXPECT_TRUE(same_scores(mine.scores, own.scores))
          << where << ", request " << i << ", output " << a;
      EXPECT_EQ(mine.reason, own.reason) << where << ", request " << i << ", output " << a;
    }
  }
}

StoredEngine::StoredEngine(std::unique_ptr<Backend> backend, kv::PageStore& store)
    : backend_(std::move(backend)) {
  TierOptions tiers;
  tiers.stores = {&store};
  tiers.write = WriteMode::kThrough;
  tiers.load = LoadMode::kAlways;
  backend_->use_tiers(tiers);
  core_ = std::make_unique<Core>(backend_->core_options(), backend_->cache(), tenants_,
                                 backend_->runner(), clock_);
  core_->set_space(kv::space_id("a model " + backend_->rows_id()));
}

std::vector<Answered> StoredEngine::ask(const std::vector<Request>& requests) {
  std::vector<Answered> answers;
  for (const Request& request : requests) {
    const auto heard = std::make_shared<TestSink>(request.sampling.n);
    core_->submit(RequestId(++requests_), request, heard);
    run();
    answers.push_back(take_answered(*heard));
  }
  return answers;
}

void StoredEngine::run() {
  for (int rests = 0; rests < 100'000; ++rests) {
    while (core_->step()) {
    }
    if (!core_->move_pages() && core_->requests_open() == 0) return core_->check();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  ADD_FAILURE() << "pages are on their way for ever";
}

std::unique_ptr<kv::PageStore> open_host_store(const Backend& backend) {
  const std::uint64_t page_bytes = backend.page_layout().page_bytes();
  return store::HostStore::open({.bytes_max = 512 * page_bytes, .page_bytes = page_bytes},
                                kv::memory_copier())
      .value();
}

std::unique_ptr<kv::PageStore> open_disk_store(const Backend& backend, const std::string& folder) {
  auto opened = store::DiskStore::open({.path = folder,
                                        .bytes_max = std::uint64_t{512} << 20,
                                        .page_bytes = backend.page_layout().page_bytes(),
                                        .block_tokens = backend.page_layout().block_tokens,
                                        .key_file = {}});
  EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
  return std::move(opened).value();
}

std::uint64_t tokens_loaded(const std::vector<Answered>& answers) {
  std::uint64_t tokens = 0;
  for (const Answered& answered : answers) {
    tokens += answered.outputs.front().record.load.tokens_loaded();
  }
  return tokens;
}

const kernels::KernelSet& fastest_set(kernels::Numerics numerics) {
  const kernels::KernelSet* fastest = nullptr;
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    if (set->numerics == numerics) fastest = set;
  }
  ASSERT(fastest != nullptr, "every numerics has a reference set");
  return *fastest;
}

}  // namespace pagoda::engine
