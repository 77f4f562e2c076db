#include "bench/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/decode.h"

namespace pagoda::bench {
namespace {

// Texts below this seed stand before what is measured, one for each sequence; prompts that are
// measured have those from it on.
constexpr std::uint64_t kMeasuredSeed = 1 << 20;

constexpr std::array<Work, 8> kWorks = {{
    {.name = "prefill", .title = "prefill 512 tokens", .prompt_tokens = 512},
    {.name = "decode", .title = "decode, empty context", .new_tokens = 64},
    {.name = "decode-1k", .title = "decode at 1k context", .depth = 1024, .new_tokens = 64},
    {.name = "decode-4k", .title = "decode at 4k context", .depth = 4096, .new_tokens = 64},
    {.name = "decode-7.8k", .title = "decode at 7.8k context", .depth = 7800, .new_tokens = 64},
    {.name = "batch",
     .title = "16 sequences decoding",
     .depth = 128,
     .new_tokens = 64,
     .sequences = 16},
    {.name = "prefill-4k",
     .title = "prefill 256 tokens at 4k",
     .depth = 4096,
     .prompt_tokens = 256},
    {.name = "prefill-long", .title = "prefill 4096 tokens", .prompt_tokens = 4096},
}};

Result<double> prefill_rate(BenchEngine& engine, const Work& work, std::uint64_t repeat) {
  std::vector<TokenId> prompt = random_prompt(engine.vocabulary(), work.depth, 0);
  if (work.depth > 0) RETURN_IF_ERROR(engine.generate(fixed_request(prompt, 1)));
  std::vector<TokenId> next =
      random_prompt(engine.vocabulary(), work.prompt_tokens, kMeasuredSeed + repeat);
  next.front() = TokenId(static_cast<std::uint32_t>(repeat % engine.vocabulary()));  // of no other
  prompt.insert(prompt.end(), next.begin(), next.end());
  ASSIGN_OR_RETURN(const TimedOutput answer, engine.generate(fixed_request(std::move(prompt), 1)));
  if (answer.record.prompt_tokens_computed != work.prompt_tokens) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{}: {} prompt tokens were computed instead of {}, as the cache had "
                             "more or less of them",
                             work.title, answer.record.prompt_tokens_computed, work.prompt_tokens)};
  }
  return work.prompt_tokens / answer.record.first_token_s();
}

Result<double> decode_rate(BenchEngine& engine, const Work& work) {
  std::vector<std::vector<TokenId>> prompts;
  for (std::uint32_t i = 0; i < work.sequences; ++i) {
    prompts.push_back(random_prompt(engine.vocabulary(), std::max(work.depth, 1u), i));
  }
  ASSIGN_OR_RETURN(const double seconds, decode_step_seconds(engine, prompts, work.new_tokens));
  return work.sequences / seconds;
}

}  // namespace

std::uint64_t Work::context_tokens() const {
  return std::uint64_t{is_prefill() ? depth : std::max(depth, 1u)} + prompt_tokens +
         std::max(new_tokens, 1u);
}

std::span<const Work> compared_works() { return kWorks; }

Result<double> tokens_per_second(BenchEngine& engine, const Work& work, std::uint64_t repeat) {
  return work.is_prefill() ? prefill_rate(engine, work, repeat) : decode_rate(engine, work);
}

}  // namespace pagoda::bench
