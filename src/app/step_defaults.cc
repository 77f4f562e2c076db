#include "app/step_defaults.h"

#include <algorithm>
#include <array>
#include <utility>

namespace pagoda::app {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

struct GpuSteps {
  std::uint64_t bytes_least;
  std::uint32_t sequences;
  std::uint32_t tokens;
};
// By memory as it is sold: a GPU of 80 GB says that it has 79.1 GiB, one of 24 GB 23.5.
constexpr std::array<GpuSteps, 4> kGpuSteps = {
    {{.bytes_least = 60 * kGiB, .sequences = 256, .tokens = 8192},
     {.bytes_least = 30 * kGiB, .sequences = 128, .tokens = 4096},
     {.bytes_least = 15 * kGiB, .sequences = 64, .tokens = 2048},
     {.bytes_least = 0, .sequences = 32, .tokens = 1024}}};
// On a CPU 64 prompt tokens a step cost 2 % of the throughput (sched/options.h): longer steps than
// these gain nothing, and everybody waits longer for them.
constexpr StepChoice kCpuSteps = {
    .sequences_max = 64, .batched_tokens_max = 512, .shared_step_tokens = 32, .itl_target_ms = 0};
constexpr double kGpuItlTargetMs = 50;

constexpr std::uint32_t kGpuTokensLeast = 512;
constexpr std::uint32_t kGpuSequencesLeast = 16;
// Workspace takes at most this part of what weights leave; the rest is the cache's.
constexpr std::uint64_t kWorkspacePart = 8;
// The cache has room for so many tokens of each sequence.
constexpr std::uint64_t kSequenceTokens = 512;
constexpr std::uint32_t kSharedPart = 8;  // of a step's tokens, while several tenants are active

StepChoice gpu_steps(const StepDevice& device) {
  const GpuSteps& steps =
      *std::find_if(kGpuSteps.begin(), kGpuSteps.end(),
                    [&](const GpuSteps& row) { return device.gpu_bytes >= row.bytes_least; });
  const auto taken =
      static_cast<std::uint64_t>(static_cast<double>(device.gpu_bytes) * device.memory_utilization);
  const std::uint64_t left = taken - std::min(taken, device.weights_bytes);
  StepChoice choice = {.sequences_max = steps.sequences,
                       .batched_tokens_max = steps.tokens,
                       .shared_step_tokens = 0,
                       .itl_target_ms = kGpuItlTargetMs};
  while (choice.batched_tokens_max > kGpuTokensLeast &&
         choice.batched_tokens_max * device.row_bytes > left / kWorkspacePart) {
    choice.batched_tokens_max /= 2;
  }
  const std::uint64_t workspace = choice.batched_tokens_max * device.row_bytes;
  const std::uint64_t for_kv = left - std::min(left, workspace);
  while (choice.sequences_max > kGpuSequencesLeast &&
         choice.sequences_max * kSequenceTokens * device.kv_token_bytes > for_kv) {
    choice.sequences_max /= 2;
  }
  return choice;
}

}  // namespace

StepChoice choose_steps(const StepFlags& flags, const StepDevice& device) {
  StepChoice choice = device.gpu_bytes > 0 ? gpu_steps(device) : kCpuSteps;
  const auto [sequences, tokens] = std::pair(flags.sequences_max, flags.batched_tokens_max);
  if (sequences) choice.sequences_max = *sequences;
  if (tokens) choice.batched_tokens_max = *tokens;
  // Where one flag is given, the other follows: a step has tokens for prompts beside every
  // sequence's own.
  if (choice.batched_tokens_max <= choice.sequences_max) {
    if (!tokens) choice.batched_tokens_max = 2 * choice.sequences_max;
    if (!sequences) choice.sequences_max = std::max(1u, choice.batched_tokens_max / 2);
  }
  if (device.gpu_bytes > 0) {
    choice.shared_step_tokens = std::max(1u, choice.batched_tokens_max / kSharedPart);
  }
  choice.shared_step_tokens = flags.shared_step_tokens.value_or(choice.shared_step_tokens);
  choice.itl_target_ms = flags.itl_target_ms.value_or(choice.itl_target_ms);
  return choice;
}

std::uint32_t choose_http_threads(bool is_on_gpu, std::size_t cores) {
  constexpr std::size_t kOnCpu = 2;
  constexpr std::size_t kMost = 8;
  return static_cast<std::uint32_t>(is_on_gpu ? std::clamp(cores / 4, kOnCpu, kMost) : kOnCpu);
}

}  // namespace pagoda::app
