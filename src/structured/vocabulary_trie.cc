#include "structured/vocabulary_trie.h"

#include <algorithm>

namespace pagoda::structured {
namespace {

std::size_t shared_bytes(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t shared = 0;
  while (shared < most && a[shared] == b[shared]) ++shared;
  return shared;
}

}  // namespace

VocabularyTrie::VocabularyTrie(std::vector<TrieEntry> entries) {
  std::erase_if(entries, [](const TrieEntry& entry) { return entry.bytes.size() > kBytesMax; });
  std::sort(entries.begin(), entries.end(), [](const TrieEntry& a, const TrieEntry& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.number < b.number;
  });
  std::vector<std::uint32_t> open;  // the nodes from the root to the last string's end
  std::string_view last;
  const auto close_to = [&](std::size_t depth) {
    while (open.size() > depth) {
      nodes_[open.back()].skip = static_cast<std::uint32_t>(nodes_.size());
      open.pop_back();
    }
  };
  for (const TrieEntry& entry : entries) {
    if (entry.bytes == last) {
      duplicates_.emplace_back(nodes_[open.back()].number, entry.number);
      continue;
    }
    close_to(shared_bytes(last, entry.bytes));
    for (std::size_t i = open.size(); i < entry.bytes.size(); ++i) {
      open.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({.depth = static_cast<std::uint16_t>(i + 1),
                        .byte = static_cast<std::uint8_t>(entry.bytes[i])});
    }
    nodes_[open.back()].number = entry.number;
    bytes_max_ = std::max(bytes_max_, entry.bytes.size());
    last = entry.bytes;
  }
  close_to(0);
}

}  // namespace pagoda::structured
