#include "engine/single_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/nonfinite_rows.h"

namespace pagoda::engine {
namespace {

// SingleSequence has pages of its own, enough for `tokens_max` tokens.
class SingleSequence {
 public:
  static Result<SingleSequence> create(model::Decoder& decoder, std::uint64_t tokens_max) {
    const kv::memory::PageLayout& layout = decoder.page_layout();
    const std::uint64_t blocks = (tokens_max + layout.block_tokens - 1) / layout.block_tokens;
    const std::uint64_t pages = blocks * decoder.group_plan().groups.size();
    if (pages > UINT32_MAX) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("a context of {} tokens needs {} blocks, more than 2^32 - 1",
                               tokens_max, pages)};
    }
    ASSIGN_OR_RETURN(kv::memory::PageBuffer buffer,
                     kv::memory::PageBuffer::allocate(layout, static_cast<std::uint32_t>(pages)));
    return SingleSequence(decoder, std::move(buffer), blocks);
  }

  // Feeds tokens at positions [begin, end) of `tokens`; fills the logits of the last one. Fails by
  // nonfinite tokens.
  Status feed(std::span<const TokenId> tokens, std::uint64_t begin, std::uint64_t end,
              std::span<float> logits) {
    const auto rows = static_cast<std::uint32_t>(end - begin);
    const model::SequenceRows sequence = {.rows = rows, .first_position = begin, .tables = tables_};
    const std::uint32_t last_row = rows - 1;
    const bool wanted = !logits.empty();
    decoder_->forward({.tokens = tokens.subspan(begin, rows),
                       .sequences = {&sequence, 1},
                       .logit_rows = {&last_row, wanted ? std::size_t{1} : std::size_t{0}}},
                      buffer_, logits.data());
    if (any_nonfinite(decoder_->nonfinite_rows())) return nonfinite_rows_error(begin, rows);
    return ok_status();
  }

 private:
  SingleSequence(model::Decoder& decoder, kv::memory::PageBuffer buffer, std::uint64_t blocks)
      : decoder_(&decoder), buffer_(std::move(buffer)), ids_(buffer_.pages()) {
    for (std::uint32_t i = 0; i < ids_.size(); ++i) ids_[i] = kv::BlockId(i);
    for (std::size_t group = 0; group < decoder.group_plan().groups.size(); ++group) {
      tables_.push_back(ids_.data() + group * blocks);
    }
  }

  model::Decoder* decoder_;
  kv::memory::PageBuffer buffer_;
  std::vector<kv::BlockId> ids_;
  std::vector<kv::memory::BlockTable> tables_;  // one per group, into ids_
};

Status check_request(const SingleRequest& request, const model::Config& config) {
  RETURN_IF_ERROR(check_sampling(request.sampling, config.vocabulary));
  if (request.prompt.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the prompt has no tokens, expected at least 1"};
  }
  if (request.prompt.size() >= request.context_max) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("the prompt has {} tokens, but the context holds {} including at "
                             "least one generated token",
                             request.prompt.size(), request.context_max)};
  }
  for (const TokenId id : request.prompt) {
    if (id.value() >= config.vocabulary) {
      return Error{ErrorCode::kOutOfRange, fmt::format("token id {} is not in the vocabulary of {}",
                                                       id.value(), config.vocabulary)};
    }
  }
  return ok_status();
}

bool is_cancelled(const SingleRequest& request) { return request.cancelled && request.cancelled(); }

// Feeds `tokens` from `begin` on, in chunks. False when cancelled on the way.
Result<bool> catch_up(const SingleRequest& request, SingleSequence& sequence,
                      std::span<const TokenId> tokens, std::uint64_t begin, std::uint32_t chunk,
                      std::span<float> logits) {
  while (begin < tokens.size()) {
    if (is_cancelled(request)) return false;
    const std::uint64_t end = std::min<std::uint64_t>(begin + chunk, tokens.size());
    const bool last = end == tokens.size();
    RETURN_IF_ERROR(sequence.feed(tokens, begin, end, last ? logits : std::span<float>{}));
    begin = end;
    if (request.on_prefill && tokens.size() == request.prompt.size()) {
      request.on_prefill(end, tokens.size());
    }
  }
  return true;
}

}  // namespace

Result<SingleOutput> generate_single(model::Decoder& decoder, const SingleRequest& request,
                                     const Clock& clock) {
  RETURN_IF_ERROR(check_request(request, decoder.config()));
  const std::uint64_t longest =
      std::min<std::uint64_t>(request.context_max, request.prompt.size() + request.tokens_max);
  ASSIGN_OR_RETURN(SingleSequence sequence, SingleSequence::create(decoder, longest));
  SamplingState sampling(request.sampling, request.prompt);
  if (request.constraint) sampling.constrain(*request.constraint);
  SamplerScratch scratch(decoder.kernel_set(), decoder.config().vocabulary);
  std::vector<TokenId> tokens = request.prompt;
  tokens.reserve(longest);
  std::vector<float> logits(decoder.config().vocabulary);
  SingleOutput output;
  const std::int64_t start_ns = clock.now_ns();
  std::int64_t first_ns = start_ns;
  std::uint64_t computed = 0;

  while (output.tokens.size() < request.tokens_max) {
    if (tokens.size() == request.context_max) {
      output.reason = FinishReason::kContext;
      break;
    }
    const std::uint64_t begin = request.kv_cache ? computed : 0;
    ASSIGN_OR_RETURN(const bool caught_up,
                     catch_up(request, sequence, tokens, begin, decoder.rows_max(), logits));
    if (!caught_up) {
      output.reason = FinishReason::kCancelled;
      break;
    }
    output.tokens_computed += tokens.size() - begin;
    computed = tokens.size();
    RETURN_IF_ERROR(sampling.prepare());
    ASSIGN_OR_RETURN(const Sampled sampled, sample(logits, sampling, scratch, tokens.size()));
    const TokenId next = sampled.token;
    if (output.tokens.empty()) first_ns = clock.now_ns();
    if (request.stops && request.stops(next)) {
      output.reason = FinishReason::kStop;
      break;
    }
    sampling.accept(next);
    tokens.push_back(next);
    output.tokens.push_back(next);
    if (request.on_token) request.on_token(next);
  }
  output.first_token_s = seconds_between(start_ns, first_ns);
  output.decode_s = seconds_between(first_ns, clock.now_ns());
  return output;
}

}  // namespace pagoda::engine
