#include "engine/tiers/page_search.h"

#include <algorithm>

namespace pagoda::engine {
namespace {

// Each is a question to every store: so often the search goes on before a gap.
constexpr std::uint32_t kGapsMax = 16;

}  // namespace

PageSearch::PageSearch(const PagePlaces& places, std::span<const kv::BlockName> names,
                       std::uint64_t first)
    : places_(places), names_(names), first_(first), end_(first) {
  full_slices_ = static_cast<std::size_t>(
      std::count_if(places.slices.begin(), places.slices.end(),
                    [](const kv::memory::LayerReach& reach) { return reach.window == 0; }));
  if (full_slices_ > 0) return;
  end_ = std::max<std::uint64_t>(first, names.size());
  begin_windows();
}

std::optional<PageSearch::Question> PageSearch::next() {
  if (stage_ == Stage::kFull) {
    if (end_ < names_.size() && stores_empty_ < places_.stores) {
      Question question = {.store = store_asked_, .keys = {}};
      for (std::uint64_t block = end_; block < names_.size(); ++block) {
        add_keys(block, /*of_windows=*/false, question);
      }
      return question;
    }
    begin_windows();
  }
  while (stage_ == Stage::kWindows && windows_from_ > windows_begin()) {
    if (stores_empty_ < places_.stores) {
      Question question = {.store = store_asked_, .keys = {}};
      for (std::uint64_t block = windows_from_; block-- > windows_begin();) {
        add_keys(block, /*of_windows=*/true, question);
      }
      return question;
    }
    end_ = ++gaps_ > kGapsMax ? first_ : windows_from_ - 1;
    begin_windows();
  }
  stage_ = Stage::kEnded;
  return std::nullopt;
}

void PageSearch::answer(std::size_t keys_found) {
  const auto store = static_cast<std::uint8_t>(store_asked_);
  std::size_t blocks = 0;
  if (stage_ == Stage::kFull) {
    blocks = std::min<std::size_t>(keys_found / full_slices_, names_.size() - end_);
    full_stores_.resize(full_stores_.size() + blocks, store);
    end_ += blocks;
  } else {
    for (; windows_from_ > windows_begin(); ++blocks) {
      const std::size_t pages = pages_of_windows(windows_from_ - 1);
      if (pages > keys_found) break;
      keys_found -= pages;
      window_stores_[--windows_from_ - first_] = store;
    }
  }
  // The one that just answered is asked again only if another went on from there.
  stores_empty_ = blocks > 0 ? 1 : stores_empty_ + 1;
  store_asked_ = (store_asked_ + 1) % places_.stores;
}

void PageSearch::begin_windows() {
  stage_ = Stage::kWindows;
  windows_from_ = end_;
  window_stores_.assign(end_ - first_, 0);
  store_asked_ = stores_empty_ = 0;
}

// Does the token behind the end see the block, in this slice?
bool PageSearch::is_needed(std::uint64_t block, std::uint32_t slice) const {
  return block >= kv::memory::first_block_kept(places_.slices[slice], end_ * places_.block_tokens,
                                               places_.block_tokens);
}

// The first block that a window slice needs; of what the pool has it needs nothing.
std::uint64_t PageSearch::windows_begin() const {
  std::uint64_t begin = end_;
  for (const kv::memory::LayerReach& reach : places_.slices) {
    if (reach.window == 0) continue;
    begin = std::min(begin, kv::memory::first_block_kept(reach, end_ * places_.block_tokens,
                                                         places_.block_tokens));
  }
  return std::max(begin, first_);
}

std::size_t PageSearch::pages_of_windows(std::uint64_t block) const {
  std::size_t pages = 0;
  for (std::uint32_t slice = 0; slice < places_.slices.size(); ++slice) {
    pages += places_.slices[slice].window != 0 && is_needed(block, slice) ? 1 : 0;
  }
  return pages;
}

void PageSearch::add_keys(std::uint64_t block, bool of_windows, Question& question) const {
  for (std::uint32_t slice = 0; slice < places_.slices.size(); ++slice) {
    const bool is_window = places_.slices[slice].window != 0;
    if (is_window != of_windows || (is_window && !is_needed(block, slice))) continue;
    question.keys.push_back({.space = places_.space, .name = names_[block], .slice = slice});
  }
}

}  // namespace pagoda::engine
