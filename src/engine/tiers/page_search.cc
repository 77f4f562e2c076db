#include "engine/tiers/page_search.h"

#include <algorithm>

namespace pagoda::engine {
namespace {

// Each gap costs a lookup to every store: so often the search continues before a gap.
constexpr std::uint32_t kGapsMax = 16;

}  // namespace

PageSearch::PageSearch(const PageSearchInputs& inputs, std::span<const kv::BlockHash> hashes,
                       std::uint64_t first)
    : inputs_(inputs), hashes_(hashes), first_(first), end_(first) {
  full_groups_ = static_cast<std::size_t>(
      std::count_if(inputs.groups.begin(), inputs.groups.end(),
                    [](const kv::memory::AttentionSpec& spec) { return spec.window == 0; }));
  if (full_groups_ > 0) return;
  end_ = std::max<std::uint64_t>(first, hashes.size());
  begin_windows();
}

std::optional<PageSearch::Lookup> PageSearch::next() {
  if (stage_ == Stage::kFull) {
    if (end_ < hashes_.size() && stores_empty_ < inputs_.stores) {
      Lookup lookup = {.store = store_asked_, .keys = {}};
      for (std::uint64_t block = end_; block < hashes_.size(); ++block) {
        add_keys(block, /*of_windows=*/false, lookup);
      }
      return lookup;
    }
    begin_windows();
  }
  while (stage_ != Stage::kEnded) {
    if (stage_ == Stage::kFirstGroup) {
      if (end_ < hashes_.size() && stores_empty_ < inputs_.stores) {
        Lookup lookup = {.store = store_asked_, .keys = {}};
        for (std::uint64_t block = end_; block < hashes_.size(); ++block) {
          lookup.keys.push_back({.space = inputs_.space, .hash = hashes_[block], .group = 0});
        }
        return lookup;
      }
      begin_windows();
    }
    if (windows_from_ > windows_begin()) {
      if (stores_empty_ < inputs_.stores) {
        Lookup lookup = {.store = store_asked_, .keys = {}};
        for (std::uint64_t block = windows_from_; block-- > windows_begin();) {
          add_keys(block, /*of_windows=*/true, lookup);
        }
        return lookup;
      }
      end_ = ++gaps_ > kGapsMax ? first_ : windows_from_ - 1;
      begin_windows();
    } else if (end_ == first_ && full_groups_ == 0 && !looked_at_first_group_) {
      begin_first_group();
    } else {
      stage_ = Stage::kEnded;
    }
  }
  return std::nullopt;
}

void PageSearch::record_found(std::size_t keys_found) {
  const auto store = static_cast<std::uint8_t>(store_asked_);
  std::size_t blocks = 0;
  if (stage_ == Stage::kFull) {
    blocks = std::min<std::size_t>(keys_found / full_groups_, hashes_.size() - end_);
    full_stores_.resize(full_stores_.size() + blocks, store);
    end_ += blocks;
  } else if (stage_ == Stage::kFirstGroup) {
    blocks = std::min<std::size_t>(keys_found, hashes_.size() - end_);
    end_ += blocks;
  } else {
    for (; windows_from_ > windows_begin(); ++blocks) {
      const std::size_t pages = pages_of_windows(windows_from_ - 1);
      if (pages > keys_found) break;
      keys_found -= pages;
      window_stores_[--windows_from_ - first_] = store;
    }
  }
  // The store that just answered is asked again only if another went on from there.
  stores_empty_ = blocks > 0 ? 1 : stores_empty_ + 1;
  store_asked_ = (store_asked_ + 1) % inputs_.stores;
}

void PageSearch::begin_windows() {
  stage_ = Stage::kWindows;
  windows_from_ = end_;
  window_stores_.assign(end_ - first_, 0);
  store_asked_ = stores_empty_ = 0;
}

void PageSearch::begin_first_group() {
  stage_ = Stage::kFirstGroup;
  looked_at_first_group_ = true;
  end_ = first_;
  gaps_ = 0;
  store_asked_ = stores_empty_ = 0;
}

// True: the token behind the end sees the block, in this group.
bool PageSearch::is_needed(std::uint64_t block, std::uint32_t group) const {
  return kept(inputs_.groups[group]).contains(block);
}

// Which blocks the token behind the end sees.
kv::memory::BlocksKept PageSearch::kept(const kv::memory::AttentionSpec& spec) const {
  return {spec, end_ * inputs_.block_tokens, inputs_.block_tokens};
}

// Returns the first block that a window group needs, one of its sinks where it has some; it needs
// nothing of what the pool has.
std::uint64_t PageSearch::windows_begin() const {
  std::uint64_t begin = end_;
  for (const kv::memory::AttentionSpec& spec : inputs_.groups) {
    if (spec.window == 0) continue;
    begin = spec.sinks > 0 ? 0 : std::min(begin, kept(spec).first);
  }
  return std::max(begin, first_);
}

std::size_t PageSearch::pages_of_windows(std::uint64_t block) const {
  std::size_t pages = 0;
  for (std::uint32_t group = 0; group < inputs_.groups.size(); ++group) {
    pages += inputs_.groups[group].window != 0 && is_needed(block, group) ? 1 : 0;
  }
  return pages;
}

void PageSearch::add_keys(std::uint64_t block, bool of_windows, Lookup& lookup) const {
  for (std::uint32_t group = 0; group < inputs_.groups.size(); ++group) {
    const bool is_window = inputs_.groups[group].window != 0;
    if (is_window != of_windows || (is_window && !is_needed(block, group))) continue;
    lookup.keys.push_back({.space = inputs_.space, .hash = hashes_[block], .group = group});
  }
}

}  // namespace pagoda::engine
