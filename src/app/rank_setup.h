// The serving program tells its ranks what to load, and they answer: JSON, of the same program on
// both ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/loaded_model.h"
#include "base/result.h"
#include "engine/backends/ranks_backend.h"
#include "kernels/ops.h"
#include "model/config.h"
#include "model/kv_cache_dtype.h"

namespace pagoda::app {

struct RankSetup {
  std::string model;      // as LoadedModel::load() takes it
  ModelLoadOptions load;  // without a tokenizer, which ranks do not need
  std::string kernel_set;
  model::KvCacheDtype kv_cache_dtype;
  std::uint32_t block_tokens = 16;
  std::uint32_t rows_max = 512;
  std::uint64_t threads = 1;
  std::chrono::milliseconds limit{60'000};  // of waits for another rank
};

std::string write_setup(const RankSetup& setup);
Result<RankSetup> read_setup(std::string_view text);

struct RankReady {
  std::string identity;
  engine::RankFacts facts;
};

std::string write_ready(const RankReady& ready);
Result<RankReady> read_ready(std::string_view text);

// Names all that the results of ranks depend on: the model's tensors and how they are read, the
// numerics and the layout of pages. Ranks whose identities differ do not compute together.
std::string identity_of(const gguf::File& file, const model::Config& config,
                        const kernels::KernelSet& kernels, const RankSetup& setup);

}  // namespace pagoda::app
