// A real model over tiers of the test's making, driven step by step.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "engine/engine_desk.h"
#include "engine/tiers/tiers.h"

namespace pagoda::engine {

inline CpuMachineOptions tier_machine_options(std::uint32_t blocks) {
  CpuMachineOptions options;
  options.threads = 1;
  options.block_tokens = 16;
  options.scheduler.sequences_max = 4;
  options.scheduler.batched_tokens_max = 64;
  options.name_blocks = true;
  options.kv_bytes = 1 << 20;
  const auto probe =
      CpuMachine::create(stories().config(), stories().weights(), kernels::ref_set(), options);
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

struct TierDesk {
  explicit TierDesk(std::uint32_t blocks)
      : machine(CpuMachine::create(stories().config(), stories().weights(), kernels::ref_set(),
                                   tier_machine_options(blocks))
                    .value()) {}

  std::uint64_t page_bytes() const { return machine->page_layout().page_bytes(); }

  // The stores must outlive the desk's core.
  void open(std::vector<kv::PageStore*> stores, WriteMode write) {
    TierOptions tiers;
    tiers.stores = std::move(stores);
    tiers.write = write;
    tiers.load = LoadMode::kAlways;
    machine->use_tiers(tiers);
    core = std::make_unique<Core>(machine->core_options(), machine->cache(), tenants,
                                  machine->runner(), clock);
  }
  // An engine with a thread of its own, over one store that outlives it.
  std::unique_ptr<Engine> make_engine(kv::PageStore& store, WriteMode write = WriteMode::kUse) {
    TierOptions tiers;
    tiers.stores = {&store};
    tiers.write = write;
    machine->use_tiers(tiers);
    EngineOptions options;
    options.core = machine->core_options();
    auto engine = std::make_unique<Engine>(options, machine->cache(), machine->runner(), clock);
    engine->set_space(kv::space_id("stories"));
    return engine;
  }
  std::shared_ptr<Heard> submit(const Request& request) {
    auto heard = std::make_shared<Heard>(request.sampling.n);
    core->submit(RequestId(++requests), request, heard);
    return heard;
  }
  // Until nothing is left to do, in or out; false: that does not come.
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

  std::unique_ptr<CpuMachine> machine;
  sched::TenantTable tenants;
  SteadyClock clock;
  std::unique_ptr<Core> core;
  std::uint64_t requests = 0;
};

}  // namespace pagoda::engine
