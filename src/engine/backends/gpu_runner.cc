#include "engine/backends/gpu_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace pagoda::engine {
namespace {

constexpr std::uint32_t kOnHost = kernels::cuda::kNotSampled;

// Does the row decide as it is? What is forbidden or counted changes it first. While a launch is
// not collected its token is not counted yet: then more is forbidden than need be, never less.
bool row_decides(const SamplingState& state) {
  const SamplingParams& options = state.options();
  return !options.logprobs && options.logit_bias.empty() && !has_penalties(options) &&
         !state.constraint() && state.stop_criteria().forbidden_after(state.generated()).empty();
}

// Returns the parameters of the sample's row `i`, whose logits are in `logit_row`.
kernels::cuda::GpuSamplingParams sampling_params_of(const LaunchSample& sample, std::uint32_t i,
                                                    std::uint32_t logit_row) {
  const SamplingParams& options = sample.sampling->options();
  return {.row = logit_row,
          .inverse_temperature = is_greedy(options) ? 0.0f : 1.0f / options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .seed_low = static_cast<std::uint32_t>(options.seed),
          .seed_high = static_cast<std::uint32_t>(options.seed >> 32),
          .position = static_cast<std::uint32_t>(sample.position) + i};
}

std::uint32_t place_in(const std::vector<std::uint32_t>& rows, std::uint32_t row) {
  return static_cast<std::uint32_t>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
}

}  // namespace

GpuRunner::GpuRunner(model::GpuDecoder& decoder, std::byte* pages, ThreadPool& pool,
                     const kernels::KernelSet& kernels)
    : decoder_(decoder), pages_(pages), pool_(pool) {
  for (std::size_t i = 0; i < pool.threads(); ++i) {
    scratch_.emplace_back(kernels, decoder.config().vocabulary);
  }
}

Result<std::unique_ptr<GpuRunner>> GpuRunner::create(model::GpuDecoder& decoder, std::byte* pages,
                                                     ThreadPool& pool,
                                                     const kernels::KernelSet& kernels) {
  std::unique_ptr<GpuRunner> runner(new GpuRunner(decoder, pages, pool, kernels));
  RETURN_IF_ERROR(runner->take_memory());
  return runner;
}

Status GpuRunner::take_memory() {
  const std::uint64_t rows = decoder_.logit_rows_max();
  ASSIGN_OR_RETURN(logits_, device::PinnedBuffer::allocate(
                                rows * decoder_.config().vocabulary * sizeof(float), "logits"));
  for (Pending& pending : pendings_) {
    ASSIGN_OR_RETURN(pending.sampled_tokens, device::PinnedBuffer::allocate(
                                                 rows * sizeof(std::uint32_t), "sampled_tokens"));
    ASSIGN_OR_RETURN(
        pending.nonfinite_words,
        device::PinnedBuffer::allocate(decoder_.options().sequences_max * sizeof(std::uint32_t),
                                       "nonfinite rows"));
    ASSIGN_OR_RETURN(pending.hidden_room,
                     device::PinnedBuffer::allocate(rows * decoder_.config().width * sizeof(float),
                                                    "hidden states"));
    ASSIGN_OR_RETURN(pending.done, device::GpuEvent::create());
  }
  rows_.reserve(decoder_.options().sequences_max);
  masked_.reserve(decoder_.options().sequences_max);
  decoder_.set_pages(pages_);
  return ok_status();
}

void GpuRunner::launch(const Launch& launch) {
  ASSERT(launched_ - collected_ < pendings_.size(), "at most one launch ahead");
  Pending* const before =
      launched_ > collected_ ? &pendings_[(launched_ - 1) % pendings_.size()] : nullptr;
  Pending& pending = pendings_[launched_ % pendings_.size()];
  ++launched_;
  keep(launch, pending);
  // The host has one place for logits.
  if (before != nullptr && before->needs_logits) finish(*before);
  if (failure_) return fail(pending, *failure_);
  const std::uint64_t graphs = decoder_.graphs_made();
  const Status started = start(launch, before, pending);
  // A launch that is ahead is made ready while the one before it is timed.
  if (decoder_.graphs_made() > graphs) {
    (before != nullptr ? *before : pending).makes_graph = true;
  }
  if (!started.ok()) return fail(pending, started.error());
  // Masks of grammars are computed while the GPU computes the rows they are for: tokens before them
  // were sampled on the host and are known. Who samples sees the error.
  if (pending.finished) return;
  masked_.clear();
  for (const LaunchSample& sample : pending.samples) {
    if (sample.sampling->constraint()) masked_.push_back(sample.sampling);
  }
  if (masked_.size() == 1) static_cast<void>(masked_.front()->prepare());
  if (masked_.size() <= 1) return;
  pool_.run(masked_.size(), [&](WorkRange range) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      static_cast<void>(masked_[i]->prepare());
    }
  });
}

// Keeps what collecting the launch needs.
void GpuRunner::keep(const Launch& launch, Pending& pending) {
  pending.samples.assign(launch.samples.begin(), launch.samples.end());
  pending.drafts.clear();
  for (const LaunchSample& sample : launch.samples) {
    pending.drafts.insert(pending.drafts.end(), sample.drafts.begin(), sample.drafts.end());
  }
  std::span<const TokenId> drafts = pending.drafts;
  for (LaunchSample& sample : pending.samples) {
    const std::size_t own = sample.drafts.size();
    sample.drafts = drafts.first(own);
    drafts = drafts.subspan(own);
  }
  pending.chosen.assign(place_results(pending.samples, pending.progress),
                        Result<SampledToken>(SampledToken{}));
  pending.scores.assign(launch.scores.begin(), launch.scores.end());
  pending.scored.assign(launch.scores.size(), TokenScore{});
  pending.nonfinite.assign(launch.rows.size(), 0);
  pending.first_positions.clear();
  for (const LaunchRows& rows : launch.rows) pending.first_positions.push_back(rows.first_position);
  pending.hidden_rows = 0;
  pending.finished = false;
  pending.makes_graph = false;
}

Status GpuRunner::start(const Launch& launch, Pending* before, Pending& pending) {
  list_logit_rows(launch, pending);
  RETURN_IF_ERROR(copy_blocks(launch.copies));
  gather_rows(launch, before);
  if (pending.logit_rows.size() > decoder_.logit_rows_max()) {
    return compute_in_groups(launch.hidden_rows, pending);
  }
  RETURN_IF_ERROR(decoder_.forward(rows_, pending.logit_rows, pending.device_samples));
  RETURN_IF_ERROR(fetch_nonfinite(pending));
  device::Stream& stream = decoder_.stream();
  RETURN_IF_ERROR(stream.copy_to_host(pending.sampled_tokens.data(),
                                      reinterpret_cast<const std::byte*>(decoder_.sampled_tokens()),
                                      pending.device_samples.size() * sizeof(std::uint32_t)));
  if (pending.needs_logits) RETURN_IF_ERROR(copy_logits(pending));
  RETURN_IF_ERROR(fetch_hidden(launch.hidden_rows, pending));
  return pending.done->record(stream);
}

// Copies the rows of logits that the host samples and scores by to their places.
Status GpuRunner::copy_logits(const Pending& pending) {
  host_rows_.clear();
  for (std::size_t i = 0; i < pending.samples.size(); ++i) {
    if (pending.device_sample[i] != kOnHost) continue;
    for (std::uint32_t row = 0; row <= pending.samples[i].drafts.size(); ++row) {
      host_rows_.push_back(pending.sample_logit[i] + row);
    }
  }
  host_rows_.insert(host_rows_.end(), pending.score_logit.begin(), pending.score_logit.end());
  std::sort(host_rows_.begin(), host_rows_.end());
  host_rows_.erase(std::unique(host_rows_.begin(), host_rows_.end()), host_rows_.end());
  const std::size_t vocabulary = decoder_.config().vocabulary;
  for (std::span<const std::uint32_t> rows = host_rows_; !rows.empty();) {
    const std::uint32_t count = model::consecutive_rows(rows);
    const std::size_t begin = rows.front() * vocabulary;
    RETURN_IF_ERROR(decoder_.stream().copy_to_host(
        reinterpret_cast<std::byte*>(logits_.as<float>() + begin),
        reinterpret_cast<const std::byte*>(decoder_.logits_data() + begin),
        count * vocabulary * sizeof(float)));
    rows = rows.subspan(count);
  }
  return ok_status();
}

// Fetches hidden states behind all that reads what they are computed from. More rows than there is
// pinned memory for come some at a time, at once.
Status GpuRunner::fetch_hidden(std::span<const std::uint32_t> rows, Pending& pending) {
  if (rows.empty()) return ok_status();
  RETURN_IF_ERROR(decoder_.hidden(rows));
  pending.hidden_rows = rows.size();
  const std::size_t rows_max = decoder_.logit_rows_max();
  if (rows.size() <= rows_max) return copy_hidden(rows, pending);
  pending.hidden.clear();
  for (std::size_t begin = 0; begin < rows.size(); begin += rows_max) {
    const auto part = rows.subspan(begin, std::min(rows_max, rows.size() - begin));
    RETURN_IF_ERROR(copy_hidden(part, pending));
    RETURN_IF_ERROR(decoder_.stream().wait());
    const auto* const values = pending.hidden_room.as<float>();
    pending.hidden.insert(pending.hidden.end(), values,
                          values + part.size() * decoder_.config().width);
  }
  return ok_status();
}

// Copies these rows to pinned memory, one behind the other.
Status GpuRunner::copy_hidden(std::span<const std::uint32_t> rows, Pending& pending) {
  const std::size_t width = decoder_.config().width;
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::uint32_t count = model::consecutive_rows(rows.subspan(begin));
    RETURN_IF_ERROR(decoder_.stream().copy_to_host(
        reinterpret_cast<std::byte*>(pending.hidden_room.as<float>() + begin * width),
        reinterpret_cast<const std::byte*>(decoder_.hidden_data() + rows[begin] * width),
        count * width * sizeof(float)));
    begin += count;
  }
  return ok_status();
}

// Fetches the flag of each LaunchRows: known when the stream's work so far is done.
Status GpuRunner::fetch_nonfinite(Pending& pending) {
  return decoder_.stream().copy_to_host(pending.nonfinite_words.data(),
                                        reinterpret_cast<const std::byte*>(decoder_.nonfinite()),
                                        pending.nonfinite.size() * sizeof(std::uint32_t));
}

// The step's inputs are copied to the device after it: attention, which reads rows of earlier steps
// without waiting for the launch before it, begins after that.
Status GpuRunner::copy_blocks(std::span<const kv::Copy> copies) {
  const std::vector<kv::memory::PageLayout>& layouts = decoder_.group_plan().layouts;
  for (std::uint32_t group = 0; group < layouts.size() && !copies.empty(); ++group) {
    copies_.clear();
    for (const kv::Copy& copy : copies) {
      if (copy.group != group) continue;
      copies_.push_back({copy.from.value(), copy.to.value(), copy.tokens});
    }
    kernels::cuda::launch_copy_rows({.pages = pages_, .layout = layouts[group], .copies = copies_},
                                    decoder_.stream().handle());
  }
  return device::last_launch_error();
}

void GpuRunner::gather_rows(const Launch& launch, Pending* before) {
  rows_.clear();
  cursor_ = 0;
  for (const LaunchRows& from : launch.rows) {
    ASSERT(from.selected.tokens_dropped.empty(), "policies that drop pages are refused on GPUs");
    model::GpuRows rows = {.rows = from.rows,
                           .first_position = from.first_position,
                           .tokens = from.tokens,
                           .drafts = from.drafts,
                           .tables = from.tables,
                           .policy = from.policy};
    if (from.tokens.size() + from.drafts.size() < from.rows) find_last_token(from, before, rows);
    rows_.push_back(rows);
  }
}

// Sets the token that the launch before chose for `from.handle`. Sequences keep their order from
// launch to launch, so the search goes on where the last one ended.
void GpuRunner::find_last_token(const LaunchRows& from, Pending* before, model::GpuRows& rows) {
  ASSERT(before != nullptr, "an unknown token is one that the launch before chooses");
  const std::size_t count = before->samples.size();
  for (std::size_t tried = 0; tried < count; ++tried, ++cursor_) {
    const std::size_t i = cursor_ % count;
    if (before->samples[i].handle != from.handle) continue;
    ++cursor_;
    ASSERT(before->samples[i].drafts.empty(), "a sequence waits until its drafts are verified");
    const Result<SampledToken>& chosen = before->chosen[before->progress[i].first];
    if (!before->finished) {
      rows.sampled_index = before->device_sample[i];
    } else if (chosen.ok()) {
      rows.last_token = chosen.value().token;
    }
    return;
  }
  ASSERT(false, "the launch before chose a token for this sequence");
}

void GpuRunner::list_logit_rows(const Launch& launch, Pending& pending) {
  std::vector<std::uint32_t>& rows = pending.logit_rows;
  engine::list_logit_rows(launch, rows);
  pending.sample_logit.clear();
  pending.score_logit.clear();
  for (const LaunchSample& sample : launch.samples) {
    pending.sample_logit.push_back(place_in(rows, sample.row));
  }
  for (const LaunchScore& score : launch.scores) {
    pending.score_logit.push_back(place_in(rows, score.row));
  }
  list_device_samples(pending);
}

// Decides where the rows of each sample are sampled: on the GPU where that can be.
void GpuRunner::list_device_samples(Pending& pending) {
  const bool in_groups = pending.logit_rows.size() > decoder_.logit_rows_max();
  pending.device_samples.clear();
  pending.device_sample.clear();
  pending.needs_logits = !pending.scores.empty();
  for (std::size_t i = 0; i < pending.samples.size(); ++i) {
    const LaunchSample& sample = pending.samples[i];
    const std::uint32_t top_k = sample.sampling->options().top_k;
    const auto first = static_cast<std::uint32_t>(pending.device_samples.size());
    const bool drawn = !in_groups && first + sample.drafts.size() < decoder_.logit_rows_max() &&
                       row_decides(*sample.sampling) &&
                       (top_k <= kernels::cuda::kTopKMax || top_k >= decoder_.config().vocabulary);
    pending.device_sample.push_back(drawn ? first : kOnHost);
    if (!drawn) pending.needs_logits = true;
    for (std::uint32_t row = 0; drawn && row <= sample.drafts.size(); ++row) {
      pending.device_samples.push_back(
          sampling_params_of(sample, row, pending.sample_logit[i] + row));
    }
  }
}

// More rows of logits than there is memory for: computed and used some at a time, at once.
Status GpuRunner::compute_in_groups(std::span<const std::uint32_t> hidden_rows, Pending& pending) {
  RETURN_IF_ERROR(decoder_.forward(rows_, {}));
  RETURN_IF_ERROR(fetch_nonfinite(pending));
  device::Stream& stream = decoder_.stream();
  const auto all = static_cast<std::uint32_t>(pending.logit_rows.size());
  for (std::uint32_t begin = 0; begin < all; begin += decoder_.logit_rows_max()) {
    const std::uint32_t count = std::min(decoder_.logit_rows_max(), all - begin);
    RETURN_IF_ERROR(stream.wait());
    RETURN_IF_ERROR(decoder_.logits(std::span(pending.logit_rows).subspan(begin, count)));
    RETURN_IF_ERROR(stream.copy_to_host(
        logits_.data(), reinterpret_cast<const std::byte*>(decoder_.logits_data()),
        std::uint64_t{count} * decoder_.config().vocabulary * sizeof(float)));
    RETURN_IF_ERROR(stream.wait());
    use_logits(pending, begin, count);
  }
  RETURN_IF_ERROR(fetch_hidden(hidden_rows, pending));
  RETURN_IF_ERROR(stream.wait());
  pending.finished = true;
  return ok_status();
}

// Chooses and looks up by logit_rows [begin, begin + count), which the host has.
void GpuRunner::use_logits(Pending& pending, std::uint32_t begin, std::uint32_t count) {
  const std::size_t vocabulary = decoder_.config().vocabulary;
  const auto logits_of = [&](std::uint32_t place) -> std::span<const float> {
    if (place < begin || place >= begin + count) return {};
    return {logits_.as<float>() + (place - begin) * vocabulary, vocabulary};
  };
  const std::size_t samples = pending.samples.size();
  pool_.run(samples + pending.scores.size(), [&](WorkRange range) {
    SamplerScratch& scratch = scratch_[range.thread];
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (i < samples) {
        if (pending.device_sample[i] != kOnHost) continue;
        sample_rows(
            pending.samples[i], pending.progress[i], pending.chosen,
            [&](std::uint32_t row) { return logits_of(pending.sample_logit[i] + row); }, scratch);
        continue;
      }
      const auto logits = logits_of(pending.score_logit[i - samples]);
      if (logits.empty()) continue;
      pending.scored[i - samples] = score_row(logits, pending.scores[i - samples], scratch);
    }
  });
}

void GpuRunner::finish(Pending& pending) {
  if (pending.finished) return;
  const Status done = wait_and_choose(pending);
  if (!done.ok()) return fail(pending, done.error());
  pending.finished = true;
}

Status GpuRunner::wait_and_choose(Pending& pending) {
  RETURN_IF_ERROR(pending.done->wait());
  if (pending.needs_logits) {
    use_logits(pending, 0, static_cast<std::uint32_t>(pending.logit_rows.size()));
  }
  for (std::size_t i = 0; i < pending.samples.size(); ++i) {
    if (pending.device_sample[i] != kOnHost) take_sampled(i, pending);
  }
  return ok_status();
}

// Takes what the GPU sampled for the rows of a sample, as far as its draft tokens are accepted.
void GpuRunner::take_sampled(std::size_t sample, Pending& pending) {
  const LaunchSample& job = pending.samples[sample];
  const auto* const tokens =
      pending.sampled_tokens.as<std::uint32_t>() + pending.device_sample[sample];
  for (std::uint32_t row = 0; row <= job.drafts.size(); ++row) {
    Result<SampledToken>& chosen = pending.chosen[pending.progress[sample].first + row];
    if (tokens[row] == kernels::cuda::kNotSampled) {
      chosen = Error{
          ErrorCode::kCorrupt,
          fmt::format("a logit of the model at position {} is not finite", job.position + row)};
      return;
    }
    job.sampling->accept(TokenId(tokens[row]));
    chosen = SampledToken{.token = TokenId(tokens[row]), .score = std::nullopt};
    if (!accepts_draft(job, row, chosen)) return;
  }
}

void GpuRunner::fail(Pending& pending, const Error& error) {
  failure_ = error;
  pending.needs_logits = false;
  pending.finished = true;
}

// 1 + the first row that is not finite, or the largest number.
void GpuRunner::read_nonfinite(Pending& pending) {
  const auto* const words = pending.nonfinite_words.as<std::uint32_t>();
  for (std::size_t i = 0; i < pending.nonfinite.size(); ++i) {
    if (words[i] == 0) continue;
    const std::uint64_t row =
        kernels::cuda::nonfinite_position(words[i]) - pending.first_positions[i];
    pending.nonfinite[i] = static_cast<std::uint8_t>(std::min<std::uint64_t>(row + 1, UINT8_MAX));
  }
}

Collected GpuRunner::collect() {
  ASSERT(collected_ < launched_, "what is collected was launched");
  Pending& pending = pendings_[collected_ % pendings_.size()];
  ++collected_;
  finish(pending);
  if (!failure_) read_nonfinite(pending);
  const std::size_t width = decoder_.config().width;
  const std::span<const float> hidden =
      pending.hidden_rows <= decoder_.logit_rows_max()
          ? std::span<const float>(pending.hidden_room.as<float>(), pending.hidden_rows * width)
          : std::span<const float>(pending.hidden);
  return {pending.chosen,    pending.scored, failure_ ? &*failure_ : nullptr,
          pending.nonfinite, hidden,         pending.makes_graph};
}

}  // namespace pagoda::engine
