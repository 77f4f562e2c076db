// A model for tests, and a function that runs sequences through it under every condition that must
// not matter: chunk sizes, threads, block ids, neighbours, KV element types.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "gguf/file.h"
#include "kernels/select.h"
#include "kv/memory/page_layout.h"
#include "model/config.h"
#include "model/decoder.h"
#include "model/weights.h"
#include "ranks/communicator.h"

namespace pagoda::model {

// The parts of every test model, which must outlive the struct.
struct ModelParts {
  const Config& config;
  const Weights& weights;
};

class TestModel {
 public:
  // Opens a GGUF file or a Hugging Face folder. Stops the program with the message when it does not
  // load. `context`: tokens that are served; 0: as trained.
  explicit TestModel(const std::string& path, std::uint64_t context = 0);

  const gguf::File& file() const { return file_; }
  const Config& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  operator ModelParts() const { return {config_, weights_}; }

 private:
  gguf::File file_;
  Config config_;
  Weights weights_;
};

// Returns the path of a file below tests/data/models.
std::string test_model_path(const std::string& name);

struct Conditions {
  const kernels::KernelSet* kernels = &kernels::ref_set();
  std::size_t threads = 1;
  std::uint32_t chunk = 0;  // tokens of a sequence per step; 0: all at once
  KvCacheDtype element = kv::memory::Element::kF16;
  std::uint32_t block_tokens = 16;
  std::uint64_t shuffle_seed = 0;               // shuffles the block ids
  kv::memory::AttentionSpec policy = {};        // of every sequence; pages it lets go of become NaN
  ranks::Communicator* communicator = nullptr;  // of several ranks, of which the first has logits
  std::uint64_t* bytes_exchanged = nullptr;     // takes what those exchanged
};

using Tokens = std::vector<TokenId>;
using Logits = std::vector<float>;  // [tokens, vocabulary]

// Seeded token ids below the vocabulary's size.
Tokens random_tokens(const Config& config, std::size_t count, std::uint64_t seed);

// Returns the logits of every position of every sequence. All sequences advance together, each by
// `chunk` tokens a step, until each has ended. Every page starts as NaN; half of them stay free.
std::vector<Logits> run_sequences(const ModelParts& model, const Conditions& conditions,
                                  const std::vector<Tokens>& sequences);

// Does the same for one sequence without any cache: position p is computed by feeding tokens 0 to p
// again.
Logits run_without_cache(const ModelParts& model, const Conditions& conditions,
                         const Tokens& tokens);

}  // namespace pagoda::model
