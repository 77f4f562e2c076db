// The fixture has a real model over tiers of the test's making, driven step by step.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "engine/engine_fixture.h"
#include "engine/tiers/tiers.h"

namespace pagoda::engine {

inline BackendOptions tier_backend_options(std::uint32_t blocks) {
  BackendOptions options;
  options.threads = 1;
  options.block_tokens = 16;
  options.scheduler.sequences_max = 4;
  options.scheduler.batched_tokens_max = 64;
  options.hash_blocks = true;
  options.sessions = true;
  options.kv_bytes = 1 << 20;
  const auto probe =
      CpuBackend::create(stories().config(), stories().weights(), kernels::ref_set(), options);
  options.kv_bytes = blocks * probe.value()->page_layout().page_bytes();
  return options;
}

inline Request tier_request(std::uint64_t number, std::uint64_t tokens = 100) {
  Request request;
  request.prompt = model::random_tokens(stories().config(), tokens, 3 + number);
  request.end.max_tokens = 8;
  request.end.ignore_eos = true;
  return request;
}

struct TierFixture {
  explicit TierFixture(std::uint32_t blocks)
      : backend(CpuBackend::create(stories().config(), stories().weights(), kernels::ref_set(),
                                   tier_backend_options(blocks))
                    .value()) {}

  std::uint64_t page_bytes() const { return backend->page_layout().page_bytes(); }

  // The stores must outlive the fixture's core.
  void open(std::vector<kv::PageStore*> stores, WriteMode write) {
    TierOptions tiers;
    tiers.stores = std::move(stores);
    tiers.write = write;
    tiers.load = LoadMode::kAlways;
    backend->use_tiers(tiers);
    core = std::make_unique<Core>(backend->core_options(), backend->cache(), tenants,
                                  backend->runner(), clock);
  }
  // Makes an engine with a thread of its own, over one store that outlives it.
  std::unique_ptr<Engine> make_engine(kv::PageStore& store, WriteMode write = WriteMode::kUse) {
    TierOptions tiers;
    tiers.stores = {&store};
    tiers.write = write;
    backend->use_tiers(tiers);
    EngineOptions options;
    options.core = backend->core_options();
    auto engine = std::make_unique<Engine>(options, backend->cache(), backend->runner(), clock);
    engine->set_space(kv::space_id("stories"));
    return engine;
  }
  std::shared_ptr<TestSink> submit(const Request& request) {
    auto heard = std::make_shared<TestSink>(request.sampling.n);
    core->submit(RequestId(++requests), request, heard);
    return heard;
  }
  // Runs until nothing is left to do, in or out; false: the end does not come.
  bool run() {
    for (int rests = 0; rests < 5000; ++rests) {
      while (core->step()) {
      }
      if (!core->move_pages() && core->requests_open() == 0) {
        core->check();
        return true;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return false;
  }

  std::unique_ptr<CpuBackend> backend;
  sched::TenantTable tenants;
  SteadyClock clock;
  std::unique_ptr<Core> core;
  std::uint64_t requests = 0;
};

}  // namespace pagoda::engine
