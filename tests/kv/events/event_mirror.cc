#include "kv/events/event_mirror.h"

#include "kv/cache_snapshot.h"

namespace pagoda::kv {

void EventMirror::apply(const CacheEvent& event, std::span<const TokenId> tokens) {
  switch (event.kind) {
    case CacheEventKind::kLost:
      copy_.reset();
      coming_.reset();
      return;
    case CacheEventKind::kSnapshotBegin:
      coming_.emplace();
      return;
    case CacheEventKind::kSnapshotPause:
      return;
    case CacheEventKind::kSnapshotEnd:
      return end_snapshot();
    default:
      break;
  }
  clears_ += event.kind == CacheEventKind::kCleared ? 1 : 0;
  // Of the coming copy only the end is asked for: it may be told of what it has not, and twice.
  if (coming_) apply_to(*coming_, event, tokens);
  if (!copy_) return;
  const auto wrong = apply_to(*copy_, event, tokens);
  if (event.kind == CacheEventKind::kPresent) {
    if (!wrong) contradict("a snapshot told of a page that no event had stored");
  } else if (wrong) {
    contradict(*wrong);
  }
}

bool EventMirror::add(Copy& copy, const CacheEvent& event, std::span<const TokenId> tokens) {
  Block& block = copy[event.hash.hex()];
  block.parent = event.parent.hex();
  block.is_public = event.is_public;
  block.tokens.clear();
  for (const TokenId token : tokens) block.tokens.push_back(token.value());
  return block.pages.insert(event.group).second;
}

bool EventMirror::remove(Copy& copy, const CacheEvent& event) {
  const auto found = copy.find(event.hash.hex());
  if (found == copy.end()) return false;
  Block& block = found->second;
  const bool was_there = block.pages.erase(event.group) > 0;
  if (block.pages.empty()) copy.erase(found);
  return was_there;
}

// What the copy did not expect, if anything.
std::optional<std::string> EventMirror::apply_to(Copy& copy, const CacheEvent& event,
                                                 std::span<const TokenId> tokens) {
  const std::string page = event.hash.hex() + " in group " + std::to_string(event.group);
  switch (event.kind) {
    case CacheEventKind::kCleared:
      copy.clear();
      return std::nullopt;
    case CacheEventKind::kRemoved:
      if (remove(copy, event)) return std::nullopt;
      return page + " left and was not there";
    default:
      if (add(copy, event, tokens)) return std::nullopt;
      return page + " came and was there";
  }
}

void EventMirror::end_snapshot() {
  if (!coming_) return;  // its begin was lost
  ++snapshots_;
  if (!copy_) ++recoveries_;
  if (copy_ && *copy_ != *coming_) contradict("a snapshot differs from what events gave");
  copy_ = std::move(coming_);
  coming_.reset();
}

std::optional<std::string> EventMirror::difference(const Cache& cache) const {
  const CacheSnapshot snapshot = take_snapshot(cache, SIZE_MAX);
  std::vector<std::string> above = {root_hash().hex()};  // [depth]
  std::size_t blocks = 0;
  for (const NodeSnapshot& node : snapshot.tree) {
    if (!node.whole) continue;
    above.resize(node.depth + 1);
    const std::string parent = above.back();
    above.push_back(node.hash);
    if (node.pages == 0) continue;
    ++blocks;
    const auto found = copy_->find(node.hash);
    if (found == copy_->end()) return "no event told of " + node.hash;
    const Block& block = found->second;
    if (block.pages.size() != node.pages) return "pages of " + node.hash + " differ";
    const bool tells = node.is_public && !node.is_bounded;
    if (block.parent != parent || block.is_public != tells) {
      return node.hash + " hangs elsewhere";
    }
    const std::vector<std::uint32_t> told = tells ? node.tokens : std::vector<std::uint32_t>();
    if (block.tokens != told) return "tokens of " + node.hash + " differ";
  }
  if (blocks != copy_->size()) return "events told of a block that is not there";
  return std::nullopt;
}

}  // namespace pagoda::kv
