// Ranks of an engine that are threads: decoders over a ThreadRanks, and channels to them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "engine/backends/ranks_backend.h"
#include "model/test_model.h"
#include "ranks/thread_ranks.h"

namespace pagoda::engine {

// How a rank leaves at its gather number `at`; 0: before its first launch.
enum class Fault : std::uint8_t { kNone, kEnds, kIsSilent, kFails };

struct FaultyRank {
  std::uint32_t rank = 0;
  std::uint64_t at = 1;
  Fault fault = Fault::kNone;
};

class ThreadWorkers {
 public:
  ThreadWorkers(const model::ModelParts& model, const kernels::KernelSet& kernels,
                const BackendOptions& options, std::uint32_t count, const FaultyRank& faulty = {});
  ~ThreadWorkers();

  // Returns an engine's backend over `count` ranks, which end with it.
  static std::unique_ptr<RanksBackend> backend(
      const model::ModelParts& model, const kernels::KernelSet& kernels,
      const BackendOptions& options, std::uint32_t count, const FaultyRank& faulty = {},
      std::chrono::milliseconds limit = std::chrono::minutes(5));

 private:
  void work(const model::ModelParts& model, const kernels::KernelSet& kernels,
            const BackendOptions& options, std::uint32_t rank, const FaultyRank& faulty,
            const ranks::Channel& channel);

  ranks::ThreadRanks ranks_;
  std::vector<ranks::Channel> own_ends_;  // the serving program's, until they are taken
  std::vector<ranks::Channel> rank_ends_;
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::engine
