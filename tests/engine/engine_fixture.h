// The fixture has a real model behind a core that tests drive by hand, and keeps the replies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/backends/cpu_backend.h"
#include "engine/core.h"
#include "model/test_model.h"

namespace pagoda::engine {

// TestSink keeps everything a sequence reported.
class TestSink final : public ReplySink {
 public:
  struct Given {
    std::vector<TokenId> tokens;
    std::vector<TokenScore> scores;
    std::optional<FinishReason> reason;
    SequenceRecord record;
    std::string message;
  };

  explicit TestSink(std::uint32_t count) : answers(count) {}

  void on_prompt_logprobs(std::span<const TokenScore> scores) override {
    prompt_scores.insert(prompt_scores.end(), scores.begin(), scores.end());
  }
  void on_token(std::uint32_t answer, const OutputToken& chosen) override {
    answers[answer].tokens.push_back(chosen.token);
    if (chosen.score != nullptr) answers[answer].scores.push_back(*chosen.score);
  }
  void on_finish(std::uint32_t answer, FinishReason reason, const SequenceRecord& record,
                 const std::string& message) override {
    answers[answer].reason = reason;
    answers[answer].record = record;
    answers[answer].message = message;
  }
  bool ended() const {
    for (const Given& given : answers) {
      if (!given.reason) return false;
    }
    return true;
  }

  std::vector<Given> answers;
  std::vector<TokenScore> prompt_scores;
};

// True: the scores are equal to the last bit.
bool same_scores(const std::vector<TokenScore>& a, const std::vector<TokenScore>& b);

// Returns stories260K, read once.
const model::TestModel& stories();

class EngineFixture {
 public:
  EngineFixture(const model::Config& config, const model::Weights& weights,
                const BackendOptions& options, const kernels::KernelSet& kernels,
                speculate::Drafter* drafter = nullptr);
  EngineFixture(const model::TestModel& model, const BackendOptions& options,
                const kernels::KernelSet& kernels)
      : EngineFixture(model.config(), model.weights(), options, kernels) {}

  explicit EngineFixture(std::unique_ptr<Backend> backend, speculate::Drafter* drafter = nullptr);

  std::shared_ptr<TestSink> submit(const Request& request);
  void cancel(std::uint64_t number) { core_->cancel(RequestId(number)); }
  bool step();
  void run() {
    while (step()) {
    }
  }

  Backend& backend() { return *backend_; }
  Core& core() { return *core_; }
  sched::TenantTable& tenants() { return tenants_; }

 private:
  void open(speculate::Drafter* drafter);

  std::unique_ptr<Backend> backend_;
  sched::TenantTable tenants_;
  SteadyClock clock_;
  std::unique_ptr<Core> core_;
  std::uint64_t requests_ = 0;
};

}  // namespace pagoda::engine
