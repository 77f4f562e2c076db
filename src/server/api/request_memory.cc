#include "server/api/request_memory.h"

#include <fmt/format.h>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::uint64_t kPromptBytes = 4 << 10;  // a prompt without its tokens
constexpr std::uint64_t kChoiceBytes = 4 << 10;  // a choice, here and in the engine
// A logit bias or a stop token, which each prompt checks.
constexpr std::uint64_t kOptionBytes = 16;
constexpr std::uint64_t kTokenBytes = 32;  // here and in the engine, and its part of a block hash
constexpr std::uint64_t kSeenTokenBytes = 16;  // of a prompt that each choice counts for a penalty

}  // namespace

RequestMemory::RequestMemory(const CompletionRequest& request, std::size_t prompts,
                             std::string field)
    : request_(request), field_(std::move(field)), prompts_(prompts) {
  const engine::Request& asked = request.engine;
  const std::uint64_t options = asked.sampling.logit_bias.size() + asked.end.stop_token_ids.size();
  // Every factor is small enough that the product cannot overflow.
  take(prompts *
       (kPromptBytes + options * kOptionBytes + request.choices_per_prompt() * kChoiceBytes));
  if (asked.prediction) take(asked.prediction->tokens().size() * kTokenBytes);
}

void RequestMemory::add_answer() {
  if (request_.answer) take(request_.answer->schemas.bytes());
}

// The grammar is shared; the matcher that the request holds is what the choices' begin as.
void RequestMemory::add_constraint() {
  const structured::Matcher* const matcher = request_.engine.constraint.get();
  if (matcher == nullptr) return;
  matcher_bytes_ = matcher->grammar().bytes() +
                   (1 + prompts_ * request_.choices_per_prompt()) * matcher->bytes_max();
  take(matcher_bytes_);
}

void RequestMemory::add(const Prompt& prompt) {
  take(prompt.tokens.size() * kTokenBytes + prompt.text.size() + prompt.rendered.size() +
       request_.choices_per_prompt() * repeated_bytes(prompt));
}

// Returns the bytes that each choice takes for the prompt: what its reply repeats, and its penalty.
std::uint64_t RequestMemory::repeated_bytes(const Prompt& prompt) const {
  const OutputOptions& output = request_.output;
  const std::uint64_t tokens = prompt.tokens.size();
  std::uint64_t bytes = 2 * prompt.text.size();  // the text, and its JSON
  if (request_.engine.sampling.repetition_penalty != 1.0f) bytes += tokens * kSeenTokenBytes;
  if (output.return_token_ids) bytes += tokens * kTokenIdBytes;
  if (output.echo && output.logprobs) bytes += tokens * (*output.logprobs + 2) * kLogprobBytes;
  if (output.prompt_logprobs) bytes += tokens * (*output.prompt_logprobs + 2) * kLogprobBytes;
  return bytes;
}

void RequestMemory::take(std::uint64_t bytes) {
  bytes_ += bytes;
  if (bytes_ <= kRequestMemoryMax) return;
  throw ApiError(
      400,
      fmt::format("{}: {} prompts with n {} take more than {} MiB of memory: send them in "
                  "several requests",
                  field_, prompts_, request_.choices_per_prompt(), kRequestMemoryMax >> 20),
      field_, "request_too_large");
}

}  // namespace pagoda::server
