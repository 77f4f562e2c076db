// TenthModel stands for a draft model of a tenth of a model's size: the first tenth of its layers
// and of its tokens. It costs what such a model costs; its tokens mean nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/ops.h"
#include "model/decoder.h"

namespace pagoda::bench {

// Does not move: the decoder points into it.
class TenthModel {
 public:
  // The model behind config and weights, and the kernel set, must outlive it.
  TenthModel(const model::Config& config, const model::Weights& weights,
             const kernels::KernelSet& kernels, std::uint32_t threads);
  TenthModel(const TenthModel&) = delete;
  TenthModel& operator=(const TenthModel&) = delete;

  // Computes so many tokens one after the other, as a draft model finds them.
  Status draft(std::uint32_t tokens);

 private:
  model::Config config_;
  model::Weights weights_;
  ThreadPool pool_;
  std::unique_ptr<model::Decoder> decoder_;
};

}  // namespace pagoda::bench
