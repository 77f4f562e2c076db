#include "verify/harness.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/decode_traffic.h"
#include "app/synthetic_request.h"

namespace pagoda::verify {
namespace {

constexpr std::chrono::milliseconds kInterruptPoll{50};
constexpr std::uint32_t kStepTokens = 512;
constexpr std::uint32_t kSequencesRoom = 32;

}  // namespace

VerifyEngine::VerifyEngine(std::unique_ptr<engine::Backend> backend, const Clock& clock,
                           const terminal::Interrupt& interrupt)
    : backend_(std::move(backend)), interrupt_(interrupt) {
  engine::EngineOptions options;
  options.core = backend_->core_options();
  engine_ = std::make_unique<engine::Engine>(options, backend_->cache(), backend_->runner(), clock);
}

Result<std::vector<std::vector<VerifiedOutput>>> VerifyEngine::ask_at_once(
    const std::vector<engine::Request>& questions) {
  std::vector<std::shared_ptr<VerifySink>> sinks;
  for (const engine::Request& question : questions) {
    sinks.push_back(std::make_shared<VerifySink>(question.sampling.n));
    RETURN_IF_ERROR(engine_->submit(question, sinks.back()));
  }
  std::vector<std::vector<VerifiedOutput>> answers;
  for (const auto& sink : sinks) {
    while (!sink->wait(kInterruptPoll)) {
      if (interrupt_.requested()) return Error{ErrorCode::kExhausted, "interrupted"};
    }
    answers.push_back(sink->take());
  }
  std::size_t choices = 1;
  for (const std::vector<VerifiedOutput>& each : answers) {
    choices = std::max(choices, each.size());
    for (const VerifiedOutput& answer : each) {
      if (answer.reason == engine::FinishReason::kLength) continue;
      return Error{ErrorCode::kExhausted,
                   fmt::format("a sequence ended after {} tokens ({}){}{}", answer.scores.size(),
                               engine::finish_name(*answer.reason),
                               answer.message.empty() ? "" : ": ", answer.message)};
    }
  }
  std::vector<std::vector<VerifiedOutput>> by_choice(choices);
  for (std::size_t choice = 0; choice < choices; ++choice) {
    for (const std::vector<VerifiedOutput>& each : answers) {
      by_choice[choice].push_back(each[choice < each.size() ? choice : 0]);
    }
  }
  return by_choice;
}

Result<std::vector<VerifiedOutput>> VerifyEngine::ask_one_by_one(
    const std::vector<engine::Request>& questions) {
  std::vector<VerifiedOutput> answers;
  for (const engine::Request& question : questions) {
    ASSIGN_OR_RETURN(std::vector<std::vector<VerifiedOutput>> one, ask_at_once({question}));
    answers.push_back(std::move(one[0][0]));
  }
  return answers;
}

std::vector<engine::Request> VerifyHarness::questions() const {
  const std::uint32_t longest = options_.prompt_tokens;
  const std::uint32_t vocabulary = model_.config().vocabulary;
  const std::vector<TokenId> beginning = app::random_prompt(vocabulary, longest * 3 / 4, 1);
  const std::uint32_t lengths[] = {longest, longest - longest / 20, longest / 2 + 3,
                                   longest - longest / 4, 17};
  std::vector<engine::Request> made;
  for (std::uint32_t i = 0; i < std::size(lengths); ++i) {
    std::vector<TokenId> prompt = app::random_prompt(vocabulary, lengths[i], 100 + i);
    if (i < 2) std::copy_n(beginning.begin(), beginning.size(), prompt.begin());
    engine::Request question = app::fixed_request(std::move(prompt), options_.new_tokens);
    question.sampling.logprobs = 2;
    question.sampling.seed = 7 + i;
    if (i % 2 == 1) question.sampling.temperature = 0.9f;
    if (i == 3) question.sampling.top_p = 0.8f;
    made.push_back(std::move(question));
  }
  return made;
}

engine::BackendOptions VerifyHarness::backend_options() const {
  engine::BackendOptions backend;
  backend.threads = options_.threads;
  backend.kv_cache_dtype = options_.kv_cache_dtype;
  backend.kv_policy = options_.kv_policy;
  backend.context_tokens = std::uint64_t{options_.prompt_tokens} + options_.new_tokens;
  // Room for all questions and their forks, whatever the pool's blocks waste.
  const std::uint64_t tokens = backend.context_tokens + backend.block_tokens;
  backend.kv_bytes =
      kSequencesRoom * tokens * app::kv_bytes_per_token(model_.config(), kv::memory::Element::kF32);
  backend.scheduler.sequences_max = kSequencesRoom;
  backend.scheduler.batched_tokens_max = kStepTokens;
  backend.model_name = options_.model;
  backend.on_pack = model_.pack_progress();
  return backend;
}

Result<std::unique_ptr<engine::Backend>> VerifyHarness::create_backend(
    std::string_view way, const engine::BackendOptions& options, std::uint64_t block_bytes,
    std::uint32_t blocks) const {
  app::DeviceOptions device = options_.device;
  if (way == "cold") device.ranks = 1;  // the reference, for any number of ranks
  engine::BackendOptions sized = options;
  if (blocks > 0) {
    device.gpu_blocks = blocks;
    sized.kv_bytes = blocks * block_bytes;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Backend> backend,
                   app::create_backend(device, model_, kernels_, sized));
  const std::uint64_t context = backend->core_options().limits.context_tokens;
  if (context < options.context_tokens) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("prompts and outputs take {} tokens, the context holds {}",
                             options.context_tokens, context)};
  }
  return options_.replace_backend ? options_.replace_backend(way, std::move(backend))
                                  : std::move(backend);
}

std::unique_ptr<VerifyEngine> VerifyHarness::start_over(
    std::unique_ptr<engine::Backend> backend) const {
  return std::make_unique<VerifyEngine>(std::move(backend), clock_, interrupt_);
}

Result<std::unique_ptr<VerifyEngine>> VerifyHarness::start(
    std::string_view way, const engine::BackendOptions& options) const {
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Backend> backend, create_backend(way, options));
  return start_over(std::move(backend));
}

}  // namespace pagoda::verify
