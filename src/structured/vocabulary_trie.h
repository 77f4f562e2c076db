// VocabularyTrie holds byte strings with a number each, as a prefix tree in preorder: a walk reads
// it from front to back and skips the subtrees that cannot match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace pagoda::structured {

struct TrieEntry {
  std::string_view bytes;  // not empty
  std::uint32_t number = 0;
};

class VocabularyTrie {
 public:
  static constexpr std::uint32_t kNoNumber = 0xFFFFFFFF;

  struct Node {
    std::uint32_t skip = 0;            // the node behind this subtree
    std::uint32_t number = kNoNumber;  // of the string that ends here
    std::uint16_t depth = 0;           // from 1
    std::uint8_t byte = 0;
  };

  VocabularyTrie() = default;
  // Strings longer than kBytesMax are left out.
  explicit VocabularyTrie(std::vector<TrieEntry> entries);

  static constexpr std::size_t kBytesMax = 1024;

  std::span<const Node> nodes() const { return nodes_; }
  std::size_t bytes_max() const { return bytes_max_; }
  // Entries with the bytes of another one: (the number in the tree, the other).
  std::span<const std::pair<std::uint32_t, std::uint32_t>> duplicates() const {
    return duplicates_;
  }

 private:
  std::vector<Node> nodes_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> duplicates_;
  std::size_t bytes_max_ = 0;
};

}  // namespace pagoda::structured
