// The same requests computed in many ways, for tables of combinations: alone without a cache, one
// after the other over a cache, in chunks, all at once, with too few blocks, by pages of a store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_fixture.h"
#include "kv/tiers/page_store.h"

namespace pagoda::engine {

// Answered is what one request got: an output for each of its n sequences.
struct Answered {
  std::vector<TestSink::Given> outputs;
  std::vector<TokenScore> prompt_scores;
};

// Way says how requests are computed.
struct EngineWay {
  std::string name;
  std::size_t threads = 1;
  std::uint32_t step_tokens = 512;
  bool one_by_one = false;   // else all at once
  std::uint32_t rounds = 1;  // the second finds in the cache what the first computed
  std::uint64_t blocks = 0;  // of each group; 0: more than the requests need
  speculate::Drafter* drafter = nullptr;
};

struct WayAnswers {
  std::vector<std::vector<Answered>> rounds;
  Counters counters;
  std::uint64_t preemptions = 0;
  std::uint64_t duplicates = 0;  // blocks of the same tokens that were computed twice
};

// WayRunner computes requests on one model, kernel set and KV format.
class WayRunner {
 public:
  // All must outlive the runner. `options` has the KV format and the tokens of a block.
  WayRunner(const model::ModelParts& model, const kernels::KernelSet& kernels,
            const BackendOptions& options);

  // Every sequence alone, without a cache and whole prompts at once, by one thread. Sequence i of
  // several is asked for by its own seed.
  std::vector<Answered> alone(const std::vector<Request>& requests) const;
  // Expects that blocks of the same tokens have the same bytes.
  WayAnswers go(const EngineWay& way, const std::vector<Request>& requests) const;
  // The same, and expects what the requests get alone.
  WayAnswers expect(const EngineWay& way, const std::vector<Request>& requests,
                    const std::vector<Answered>& alone) const;
  // Makes a backend whose pages stores may keep.
  std::unique_ptr<Backend> create_for_store() const;

 private:
  BackendOptions options_of(const EngineWay& way) const;

  const model::Config& config_;
  const model::Weights& weights_;
  const kernels::KernelSet& kernels_;
  BackendOptions options_;
  std::uint64_t page_bytes_ = 0;
  std::size_t groups_ = 1;
};

// Expects the same tokens, scores to the last bit, and reasons.
void expect_same_outputs(const std::vector<Answered>& got, const std::vector<Answered>& alone,
                         const std::string& where);

// StoredEngine computes over one store, to which every page goes as soon as it is whole. Its pages
// have the address that a server gives them: the model's and rows_id().
class StoredEngine {
 public:
  // The store must outlive the engine.
  StoredEngine(std::unique_ptr<Backend> backend, kv::PageStore& store);

  // Asks one after the other, and waits until nothing is on its way to the store any more.
  std::vector<Answered> ask(const std::vector<Request>& requests);
  Backend& backend() { return *backend_; }

 private:
  void run();

  std::unique_ptr<Backend> backend_;
  sched::TenantTable tenants_;
  SteadyClock clock_;
  std::unique_ptr<Core> core_;
  std::uint64_t requests_ = 0;
};

// Stores for pages of a backend.
std::unique_ptr<kv::PageStore> open_host_store(const Backend& backend);
std::unique_ptr<kv::PageStore> open_disk_store(const Backend& backend, const std::string& folder);

// Returns the tokens that came from a store.
std::uint64_t tokens_loaded(const std::vector<Answered>& answers);

// Returns the fastest set of the numerics on this machine.
const kernels::KernelSet& fastest_set(kernels::Numerics numerics);

}  // namespace pagoda::engine
