// SamplerScratch is the memory of one sampling thread: buffers of vocabulary size, allocated once
// and shared by all requests that the thread samples for. Nothing in the scratch outlives a call
// but a reply's top logprobs, which stand until the next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/logit_order.h"
#include "engine/token_logprob.h"
#include "kernels/ops.h"

namespace pagoda::engine {

struct SamplerScratch {
  // The kernel set must outlive the scratch.
  SamplerScratch(const kernels::KernelSet& kernel_set, std::size_t vocabulary)
      : kernels(kernel_set),
        logits(vocabulary),
        weights(vocabulary),
        block_masses(logit_blocks(vocabulary)),
        first(vocabulary) {}

  const kernels::KernelSet& kernels;
  std::vector<float> logits;                // [vocabulary], adjusted or narrowed to the top k
  std::vector<std::uint32_t> weights;       // [vocabulary]
  std::vector<std::uint64_t> block_masses;  // [blocks of kLogitBlock tokens]
  TopKTokens first;
  std::vector<TokenLogprob> top;  // as many entries as were asked for
};

}  // namespace pagoda::engine
