// NullRunner computes nothing and always samples the same token: what is left is the engine itself.
#pragma once

#include <vector>

#include "engine/runner.h"

namespace pagoda::engine {

class NullRunner final : public Runner {
 public:
  void launch(const Launch& launch) override {
    samples_.resize(launch.samples.size(), Result<SampledToken>(SampledToken{TokenId(1), {}}));
    scores_.resize(launch.scores.size());
    launches_ += 1;
  }
  Collected collect() override { return {samples_, scores_}; }
  std::uint64_t launches() const { return launches_; }

 private:
  std::vector<Result<SampledToken>> samples_;
  std::vector<TokenScore> scores_;
  std::uint64_t launches_ = 0;
};

// DeafSink ignores its replies.
class DeafSink final : public ReplySink {
 public:
  void on_token(std::uint32_t, const OutputToken&) override { ++tokens_; }
  void on_finish(std::uint32_t, FinishReason, const SequenceRecord&, const std::string&) override {}
  std::uint64_t tokens() const { return tokens_; }

 private:
  std::uint64_t tokens_ = 0;
};

}  // namespace pagoda::engine
