#include "engine/backends/cpu_runner.h"

#include "base/assert.h"
#include "engine/nonfinite_rows.h"

namespace pagoda::engine {

#ifdef PAGODA_DEV_CHECKS
namespace {

// Blocks that a launch begins hold nothing yet: whoever reads a row before it is written gets NaN.
void spoil_new_blocks(const Launch& launch, const kv::memory::PageBuffer& pages) {
  const std::uint64_t block_tokens = pages.layout().block_tokens;
  for (const LaunchRows& rows : launch.rows) {
    for (std::uint32_t group = 0; group < rows.tables.size(); ++group) {
      const std::uint64_t begin = rows.selected.slot(group, rows.first_position);
      const std::uint64_t first = (begin + block_tokens - 1) / block_tokens;
      for (std::uint64_t b = first; b * block_tokens < begin + rows.rows; ++b) {
        pages.fill_with_nan(rows.tables[group][b]);
      }
    }
  }
}

}  // namespace
#endif

CpuRunner::CpuRunner(model::Decoder& decoder, const kv::memory::PageBuffer& pages, ThreadPool& pool)
    : decoder_(decoder),
      pages_(pages),
      sampler_(decoder.kernel_set(), decoder.config().vocabulary, decoder.rows_max(), pool) {
  tokens_.reserve(decoder.rows_max());
  nonfinite_.reserve(decoder.rows_max());
}

void CpuRunner::launch(const Launch& launch) {
  for (const kv::Copy& copy : launch.copies) {
    kv::memory::copy_rows(decoder_.group_plan().layouts[copy.group], pages_.page(copy.from),
                          pages_.page(copy.to), copy.tokens);
  }
#ifdef PAGODA_DEV_CHECKS
  spoil_new_blocks(launch, pages_);
#endif
  sampler_.begin(launch);
  forward(launch);
  hidden_.resize(launch.hidden_rows.size() * decoder_.config().width);
  if (!hidden_.empty()) decoder_.hidden(launch.hidden_rows, hidden_.data());
  sampler_.sample(launch, [this](std::span<const std::uint32_t> rows, std::span<float> logits) {
    decoder_.logits(rows, logits.data());
    return true;
  });
}

void CpuRunner::forward(const Launch& launch) {
  tokens_.clear();
  sequences_.clear();
  for (const LaunchRows& rows : launch.rows) {
    ASSERT(rows.tokens.size() + rows.drafts.size() == rows.rows,
           "nothing is launched ahead here: all tokens are known");
    tokens_.insert(tokens_.end(), rows.tokens.begin(), rows.tokens.end());
    tokens_.insert(tokens_.end(), rows.drafts.begin(), rows.drafts.end());
    sequences_.push_back({rows.rows, rows.first_position, rows.tables, rows.policy, rows.selected});
  }
  decoder_.forward({.tokens = tokens_, .sequences = sequences_, .logit_rows = {}}, pages_, nullptr);
  nonfinite_.clear();
  std::size_t first = 0;
  for (const LaunchRows& rows : launch.rows) {
    nonfinite_.push_back(first_nonfinite(decoder_.nonfinite_rows().subspan(first, rows.rows)));
    first += rows.rows;
  }
}

Collected CpuRunner::collect() {
  return {sampler_.samples(), sampler_.scores(), nullptr, nonfinite_, hidden_};
}

}  // namespace pagoda::engine
