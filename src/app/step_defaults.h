// Chooses how large the steps of a server are where nobody says: by device, model and memory. Pure
// functions; docs/guide/scheduling.md has the rules in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace pagoda::app {

// StepFlags are what was asked for; fields that are unset are chosen.
struct StepFlags {
  std::optional<std::uint32_t> sequences_max = {};       // --max-num-seqs
  std::optional<std::uint32_t> batched_tokens_max = {};  // --max-num-batched-tokens
  std::optional<std::uint32_t> shared_step_tokens = {};  // --shared-step-tokens
  std::optional<double> itl_target_ms = {};              // --itl-target; 0: none
};

// The device that computes, and what a model takes of its memory.
struct StepDevice {
  std::uint64_t gpu_bytes = 0;       // all memory of the GPU; 0: a CPU
  double memory_utilization = 1;     // share of them that may be taken
  std::uint64_t weights_bytes = 0;   // 0: not known
  std::uint64_t row_bytes = 0;       // workspace of each token of a step; 0: not known
  std::uint64_t kv_token_bytes = 0;  // of the cache, for a token; 0: not known
};

struct StepChoice {
  std::uint32_t sequences_max = 0;
  std::uint32_t batched_tokens_max = 0;
  std::uint32_t shared_step_tokens = 0;
  double itl_target_ms = 0;

  bool operator==(const StepChoice&) const = default;
};

StepChoice choose_steps(const StepFlags& flags, const StepDevice& device);

// Returns the threads that run connections. A GPU gives more tokens a second than two threads send,
// and leaves cores free; beside a model on a CPU each of them takes a core from it.
std::uint32_t choose_http_threads(bool is_on_gpu, std::size_t cores);

}  // namespace pagoda::app
