#include "model/gpu_step.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.h"

namespace pagoda::model {

namespace cuda = kernels::cuda;

namespace {

constexpr std::size_t kSequenceWords = sizeof(cuda::BatchSequence) / sizeof(std::uint32_t);
constexpr std::size_t kSamplingParamsWords =
    sizeof(cuda::GpuSamplingParams) / sizeof(std::uint32_t);

// Heads beyond this many dimensions have fewer partial results in the same memory.
constexpr std::uint32_t kPartialDims = 256;

}  // namespace

std::uint32_t consecutive_rows(std::span<const std::uint32_t> rows) {
  std::uint32_t count = 0;
  while (count < rows.size() && rows[count] == rows.front() + count) ++count;
  return count;
}

std::uint32_t launched_rows(std::uint32_t rows) {
  if (rows <= 8) return std::bit_ceil(rows);
  if (rows <= 256) return (rows + 7) / 8 * 8;
  return (rows + 31) / 32 * 32;
}

// A policy keeps no more tokens than the context has. Its sinks and a window of the model's own are
// in one table, whose gap is the one that all layers have.
std::uint64_t GpuStepLimits::table_tokens() const {
  std::uint64_t window = 0;
  for (const AttentionShape& shape : attention) {
    window = std::max<std::uint64_t>(window, shape.window);
  }
  return context_tokens + window;
}

std::size_t GpuStep::wide_items_max() const {
  std::size_t most = 0;
  for (const AttentionShape& shape : limits_.attention) {
    most = std::max<std::size_t>(
        most, query_tiles(launched_rows(limits_.rows_max), shape.heads / shape.kv_heads,
                          cuda::wide_rows(shape.head_dim)));
  }
  return most + limits_.sequences_max;
}

void GpuStep::lay_out() {
  const std::size_t rows = launched_rows(limits_.rows_max);
  const std::size_t logit_rows = launched_rows(limits_.logit_rows_max);
  std::size_t tiles = 0;
  for (const AttentionShape& shape : limits_.attention) {
    tiles = std::max<std::size_t>(
        tiles, query_tiles(static_cast<std::uint32_t>(rows), shape.heads / shape.kv_heads));
  }
  layout_.sequences = rows * 4;
  layout_.logit_rows = layout_.sequences + limits_.sequences_max * kSequenceWords;
  layout_.samples = layout_.logit_rows + logit_rows;
  layout_.nonfinite = layout_.samples + logit_rows * kSamplingParamsWords;
  layout_.items = layout_.nonfinite + limits_.sequences_max;
  layout_.merges_max = plan_limits_.front().merges;
  layout_.items_max =
      std::max<std::size_t>(plan_limits_.front().items, tiles + limits_.sequences_max) +
      wide_items_max();
  layout_.group_items = kCounts + (layout_.merges_max + layout_.items_max) * kItemWords;
  const std::size_t groups = limits_.attention.size();
  layout_.tables = layout_.items + groups * layout_.group_items;
  // Sinks, window and rows begin and end inside of blocks.
  const std::uint64_t blocks = limits_.table_tokens() / limits_.block_tokens + 4;
  layout_.table_words = limits_.sequences_max * blocks + rows / limits_.block_tokens;
  layout_.words = layout_.tables + groups * layout_.table_words;
}

Status GpuStep::take_memory(const GpuStepLimits& limits) {
  limits_ = limits;
  for (const AttentionShape& shape : limits_.attention) {
    AttentionLimits& own = plan_limits_.emplace_back();
    if (!shape.has_wide_tiles) own.wide_blocks = kNoWideTiles;
  }
  // One memory serves all groups, so that the longest rows bound it.
  for (const AttentionShape& shape : limits_.attention) {
    if (shape.head_dim <= kPartialDims) continue;
    for (AttentionLimits& own : plan_limits_) own.partial_rows = AttentionLimits{}.partial_rows / 2;
  }
  lay_out();
  ASSIGN_OR_RETURN(device_, device::Buffer::allocate(layout_.words * 4, "step inputs"));
  for (device::PinnedBuffer& host : host_) {
    ASSIGN_OR_RETURN(host, device::PinnedBuffer::allocate(layout_.words * 4, "step inputs"));
  }
  words_ = host_[0].as<std::uint32_t>();
  plans_.resize(limits_.attention.size());
  for (AttentionPlan& plan : plans_) {
    plan.items.reserve(layout_.items_max);
    plan.merges.reserve(layout_.merges_max);
    plan.wide.reserve(wide_items_max());
  }
  sequences_.reserve(limits_.sequences_max);
  return ok_status();
}

// All but the first row. Under a policy, blocks that no row of any group sees have no place in
// tables: a sequence may be much longer than the context then.
cuda::BatchSequence GpuStep::sequence_of(const GpuRows& rows) const {
  cuda::BatchSequence sequence = {.first_row = 0,
                                  .rows = rows.rows,
                                  .first_position = static_cast<std::uint32_t>(rows.first_position),
                                  .table = table_words_used_,
                                  .window = rows.policy.window,
                                  .sinks = rows.policy.sinks};
  if (rows.policy.window == 0) return sequence;
  std::uint32_t first_key = sequence.first_position;
  for (const AttentionShape& shape : limits_.attention) {
    const cuda::SeenKeys seen(shape.window, sequence);
    first_key = std::min(first_key, seen.first(sequence.first_position));
  }
  sequence.gap_begin = static_cast<std::uint32_t>(rows.policy.sink_blocks(limits_.block_tokens));
  const std::uint32_t gap_end = first_key / limits_.block_tokens;
  if (gap_end > sequence.gap_begin) sequence.gap_blocks = gap_end - sequence.gap_begin;
  return sequence;
}

void GpuStep::write_tables(const GpuRows& rows, const cuda::BatchSequence& sequence) {
  const std::uint64_t end = rows.first_position + rows.rows;
  const std::uint64_t all = (end + limits_.block_tokens - 1) / limits_.block_tokens;
  const std::uint64_t blocks = all - sequence.gap_blocks;
  ASSERT(table_words_used_ + blocks <= layout_.table_words, "the context bounds every table");
  const std::uint64_t before = std::min<std::uint64_t>(sequence.gap_begin, blocks);
  for (std::size_t s = 0; s < rows.tables.size(); ++s) {
    std::uint32_t* const to = words_ + layout_.tables + s * layout_.table_words + table_words_used_;
    std::memcpy(to, rows.tables[s], before * sizeof(std::uint32_t));
    std::memcpy(to + before, rows.tables[s] + before + sequence.gap_blocks,
                (blocks - before) * sizeof(std::uint32_t));
  }
  table_words_used_ += static_cast<std::uint32_t>(blocks);
}

// Writes tokens, positions and tables of a step and returns its rows.
std::uint32_t GpuStep::write_rows(std::span<const GpuRows> sequences) {
  auto* const batch_tokens = reinterpret_cast<cuda::BatchToken*>(words_ + layout_.batch_tokens);
  sequences_.clear();
  table_words_used_ = 0;
  std::uint32_t row = 0;
  for (const GpuRows& sequence : sequences) {
    const auto index = static_cast<std::uint32_t>(sequences_.size());
    sequences_.push_back(sequence_of(sequence));
    sequences_.back().first_row = row;
    const std::size_t own = sequence.rows - sequence.drafts.size();
    for (std::uint32_t i = 0; i < sequence.rows; ++i) {
      cuda::BatchToken& token = batch_tokens[row++];
      token = {sequence.last_token.value(), sequence.sampled_index,
               static_cast<std::uint32_t>(sequence.first_position) + i, index};
      if (i >= sequence.tokens.size() && i < own) continue;  // the last token is not known
      token.token = (i < own ? sequence.tokens[i] : sequence.drafts[i - own]).value();
      token.sampled_index = cuda::kNotSampled;
    }
    write_tables(sequence, sequences_.back());
  }
  std::fill_n(words_ + layout_.nonfinite, limits_.sequences_max, 0);
  std::memcpy(words_ + layout_.sequences, sequences_.data(),
              sequences_.size() * sizeof(cuda::BatchSequence));
  return row;
}

GpuStepShape GpuStep::write(std::span<const GpuRows> sequences,
                            std::span<const std::uint32_t> logit_rows,
                            std::span<const cuda::GpuSamplingParams> samples) {
  words_ = host_[turn_++ % 2].as<std::uint32_t>();
  const std::uint32_t rows = write_rows(sequences);
  ASSERT(rows <= limits_.rows_max, "the step has more rows than rows_max");
  for (std::size_t group = 0; group < plans_.size(); ++group) {
    plans_[group].fill(sequences_, limits_.attention[group], plan_limits_[group]);
  }
  const bool has_wide = std::any_of(plans_.begin(), plans_.end(),
                                    [](const AttentionPlan& plan) { return !plan.wide.empty(); });
  GpuStepShape shape;
  shape.decodes =
      !has_wide && std::all_of(sequences.begin(), sequences.end(), [](const GpuRows& sequence) {
        return sequence.rows == 1 + sequence.drafts.size();
      });
  shape.rows = shape.decodes ? launched_rows(rows) : rows;
  auto* const batch_tokens = reinterpret_cast<cuda::BatchToken*>(words_ + layout_.batch_tokens);
  for (std::uint32_t i = rows; i < shape.rows; ++i) {
    batch_tokens[i] = {0, cuda::kNotSampled, cuda::kNoPosition, 0};
  }
  shape.logit_rows = static_cast<std::uint32_t>(logit_rows.size());
  if (shape.decodes) shape.logit_rows = launched_rows(std::max(1u, shape.logit_rows));
  std::uint32_t* const wanted = words_ + layout_.logit_rows;
  std::copy(logit_rows.begin(), logit_rows.end(), wanted);
  std::fill(wanted + logit_rows.size(), wanted + shape.logit_rows, 0);
  for (std::size_t group = 0; group < plans_.size(); ++group) write_items(group, shape);
  shape.samples = write_samples(samples, shape.decodes);
  return shape;
}

void GpuStep::write_items(std::size_t group, GpuStepShape& shape) {
  const AttentionPlan& plan = plans_[group];
  ASSERT(plan.items.size() + plan.wide.size() <= layout_.items_max &&
             plan.merges.size() <= layout_.merges_max,
         "a plan keeps within its limits");
  std::uint32_t* const counts = words_ + group_items(group);
  counts[0] = static_cast<std::uint32_t>(plan.items.size());
  counts[1] = static_cast<std::uint32_t>(plan.merges.size());
  counts[2] = static_cast<std::uint32_t>(plan.wide.size());
  std::uint32_t* const items = counts + kCounts + layout_.merges_max * kItemWords;
  std::memcpy(counts + kCounts, plan.merges.data(),
              plan.merges.size() * sizeof(cuda::AttentionItem));
  std::memcpy(items, plan.items.data(), plan.items.size() * sizeof(cuda::AttentionItem));
  std::memcpy(items + plan.items.size() * kItemWords, plan.wide.data(),
              plan.wide.size() * sizeof(cuda::AttentionItem));
  // Graphs are made for few shapes: launches are rounded up, and surplus blocks return at once.
  const auto rounded = [&](std::uint32_t count) {
    return shape.decodes && count > 0 ? std::bit_ceil(count) : count;
  };
  shape.items.push_back(rounded(counts[0]));
  shape.merges.push_back(rounded(counts[1]));
  shape.wide.push_back(counts[2]);
}

// Returns how many samples are launched; surplus ones sample nothing.
std::uint32_t GpuStep::write_samples(std::span<const cuda::GpuSamplingParams> samples,
                                     bool decodes) {
  const auto count = static_cast<std::uint32_t>(samples.size());
  const std::uint32_t launched = decodes && count > 0 ? launched_rows(count) : count;
  auto* const params = reinterpret_cast<cuda::GpuSamplingParams*>(words_ + layout_.samples);
  std::copy(samples.begin(), samples.end(), params);
  std::fill(params + count, params + launched, cuda::GpuSamplingParams{.row = cuda::kNoRow});
  return launched;
}

Status GpuStep::send(device::Stream& stream, const GpuStepShape& shape) const {
  const auto send = [&](std::size_t begin, std::size_t count) {
    return stream.copy_to_device(device_.data() + begin * 4,
                                 reinterpret_cast<const std::byte*>(words_ + begin), count * 4);
  };
  RETURN_IF_ERROR(send(0, std::size_t{shape.rows} * 4));
  RETURN_IF_ERROR(send(layout_.sequences, layout_.items - layout_.sequences));
  for (std::size_t s = 0; s < plans_.size(); ++s) {
    const std::size_t at = group_items(s);
    RETURN_IF_ERROR(send(at, kCounts + plans_[s].merges.size() * kItemWords));
    RETURN_IF_ERROR(send(at + kCounts + layout_.merges_max * kItemWords,
                         (plans_[s].items.size() + plans_[s].wide.size()) * kItemWords));
    RETURN_IF_ERROR(send(layout_.tables + s * layout_.table_words, table_words_used_));
  }
  return ok_status();
}

Status GpuStep::send_logit_rows(device::Stream& stream, std::span<const std::uint32_t> rows) {
  auto* const words = host_[turn_ % 2].as<std::uint32_t>();
  std::copy(rows.begin(), rows.end(), words + layout_.logit_rows);
  return stream.copy_to_device(device_.data() + layout_.logit_rows * 4,
                               reinterpret_cast<const std::byte*>(words + layout_.logit_rows),
                               rows.size() * 4);
}

}  // namespace pagoda::model
