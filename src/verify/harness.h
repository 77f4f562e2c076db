// Where verification asks its questions: engines made of one model, one after another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/device_choice.h"
#include "app/loaded_model.h"
#include "base/clock.h"
#include "base/result.h"
#include "engine/backends/cpu_backend.h"
#include "engine/engine.h"
#include "terminal/interrupt.h"
#include "verify/output.h"

namespace pagoda::verify {

struct VerifyOptions {
  std::string model = app::default_model_path();
  app::DeviceOptions device;
  model::KvCacheDtype kv_cache_dtype;
  kv::KvPolicy kv_policy = {};
  std::uint32_t threads = 0;          // where the way does not say; 0: usable cores
  std::uint32_t prompt_tokens = 100;  // of the longest question
  std::uint32_t new_tokens = 24;      // of each sequence
  std::string folder;                 // of the disk tier; empty: for temporary files
  std::string remote;                 // URL of a store; empty: none
  bool json = false;
  // For tests: what computes a way's outputs may be replaced by something that is wrong.
  std::function<std::unique_ptr<engine::Backend>(std::string_view way,
                                                 std::unique_ptr<engine::Backend>)>
      replace_backend = {};
};

// An engine over a backend of its own.
class VerifyEngine {
 public:
  VerifyEngine(std::unique_ptr<engine::Backend> backend, const Clock& clock,
               const terminal::Interrupt& interrupt);

  engine::Backend& backend() { return *backend_; }
  engine::Engine& engine() { return *engine_; }

  // Outputs for each question, [choice][question]: of those that have fewer choices, the first. An
  // error where a sequence ended early.
  Result<std::vector<std::vector<VerifiedOutput>>> ask_at_once(
      const std::vector<engine::Request>& questions);
  // The same, but each has ended before the next is asked.
  Result<std::vector<VerifiedOutput>> ask_one_by_one(const std::vector<engine::Request>& questions);

 private:
  std::unique_ptr<engine::Backend> backend_;
  const terminal::Interrupt& interrupt_;
  std::unique_ptr<engine::Engine> engine_;  // last: its thread uses the others
};

class VerifyHarness {
 public:
  VerifyHarness(const VerifyOptions& options, const app::LoadedModel& model,
                const kernels::KernelSet& kernels)
      : options_(options), model_(model), kernels_(kernels) {}

  const VerifyOptions& options() const { return options_; }
  std::vector<gguf::OpenedPart> model_parts() const { return model_.file().opened_parts(); }
  const Clock& clock() const { return clock_; }
  bool interrupted() const { return interrupt_.requested(); }

  // Prompts of several lengths, two with the same prefix; some outputs are sampled, others greedy.
  std::vector<engine::Request> questions() const;
  // As a question is best answered; ways change what they are about.
  engine::BackendOptions backend_options() const;
  // `blocks` are those of the pool; 0: as many as there is memory for.
  Result<std::unique_ptr<engine::Backend>> create_backend(std::string_view way,
                                                          const engine::BackendOptions& options,
                                                          std::uint64_t block_bytes = 0,
                                                          std::uint32_t blocks = 0) const;
  // create_backend and an engine over it.
  Result<std::unique_ptr<VerifyEngine>> start(std::string_view way,
                                              const engine::BackendOptions& options) const;
  std::unique_ptr<VerifyEngine> start_over(std::unique_ptr<engine::Backend> backend) const;

 private:
  const VerifyOptions& options_;
  const app::LoadedModel& model_;
  const kernels::KernelSet& kernels_;
  SteadyClock clock_;
  terminal::Interrupt interrupt_;
};

}  // namespace pagoda::verify
