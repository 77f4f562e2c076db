#include "bench/cache_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kv/memory/page_buffer.h"

namespace pagoda::bench {
namespace {

// The logits of the last token, with the tokens fed in two parts, each in chunks that the decoder
// takes: [0, split) and [split, end).
Result<std::vector<float>> logits_behind(model::Decoder& decoder, std::span<const TokenId> tokens,
                                         std::size_t split) {
  const kv::memory::PageLayout& layout = decoder.page_layout();
  const std::size_t blocks = (tokens.size() + layout.block_tokens - 1) / layout.block_tokens;
  const std::size_t groups = decoder.group_plan().groups.size();
  ASSIGN_OR_RETURN(
      kv::memory::PageBuffer buffer,
      kv::memory::PageBuffer::allocate(layout, static_cast<std::uint32_t>(blocks * groups)));
  std::vector<kv::BlockId> ids;
  for (std::uint32_t i = 0; i < blocks * groups; ++i) ids.emplace_back(i);
  std::vector<kv::memory::BlockTable> tables;
  for (std::size_t group = 0; group < groups; ++group) {
    tables.push_back(ids.data() + group * blocks);
  }
  std::vector<float> logits(decoder.config().vocabulary);
  for (std::size_t begin = 0; begin < tokens.size();) {
    const std::size_t part_end = begin < split ? split : tokens.size();
    const std::size_t end = std::min<std::size_t>(begin + decoder.rows_max(), part_end);
    const auto rows = static_cast<std::uint32_t>(end - begin);
    const model::SequenceRows sequence = {.rows = rows, .first_position = begin, .tables = tables};
    const std::uint32_t last_row = rows - 1;
    decoder.forward({.tokens = tokens.subspan(begin, rows),
                     .sequences = {&sequence, 1},
                     .logit_rows = {&last_row, 1}},
                    buffer, logits.data());
    begin = end;
  }
  return logits;
}

}  // namespace

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  }
  return largest;
}

void add_cache_figures(terminal::BenchReport& report, const std::string& shape, double difference,
                       std::string_view what) {
  report.add_figure("kv_shape", shape, fmt::format("K and V of the cache: {} each", shape));
  report.add_figure("largest_difference", difference,
                    fmt::format("largest absolute difference of {} with and without the cache: {}",
                                what, difference));
}

Result<double> logit_difference(model::Decoder& decoder, std::span<const TokenId> tokens) {
  ASSIGN_OR_RETURN(const std::vector<float> whole, logits_behind(decoder, tokens, 0));
  ASSIGN_OR_RETURN(const std::vector<float> cached,
                   logits_behind(decoder, tokens, tokens.size() - 1));
  return largest_difference(whole, cached);
}

}  // namespace pagoda::bench
