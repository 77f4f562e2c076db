// Special tokens are cut out of a text before it is encoded.
//
// The leftmost match wins, and the longest of several at one offset. User-defined tokens are always
// cut, control and unknown tokens only within the allowed ranges. Immutable after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// A range of a text, in bytes.
struct TextRange {
  std::size_t begin;
  std::size_t end;
};

// A set of texts, each with a token. The search for the next one costs one table access per byte,
// plus at most the longest text's bytes where a first byte fits.
class TokenTrie {
 public:
  void insert(std::string_view text, TokenId id);  // the first of equal texts stays

  struct Match {
    std::size_t begin;
    std::size_t end;
    TokenId id;
  };
  // Returns the first match at or after `from` for which `accept(match)` is true.
  template <class Accept>
  std::optional<Match> find_next(std::string_view text, std::size_t from,
                                 const Accept& accept) const {
    for (std::size_t at = from; at < text.size(); ++at) {
      if (first_[static_cast<unsigned char>(text[at])] == kNone) continue;
      if (const auto match = longest_at(text, at, accept)) return match;
    }
    return std::nullopt;
  }
  bool empty() const { return nodes_.size() == 1; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // The children of a node are a list ordered by arrival; the root's are in first_.
  struct Node {
    std::uint32_t token = kNone;
    std::uint32_t child = kNone;
    std::uint32_t sibling = kNone;
    char byte = 0;
  };

  std::uint32_t child_of(std::uint32_t node, char byte) const;
  template <class Accept>
  std::optional<Match> longest_at(std::string_view text, std::size_t at,
                                  const Accept& accept) const {
    std::optional<Match> longest;
    std::uint32_t node = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      node = child_of(node, text[i]);
      if (node == kNone) break;
      if (nodes_[node].token == kNone) continue;
      const Match match{at, i + 1, TokenId(nodes_[node].token)};
      if (accept(match)) longest = match;
    }
    return longest;
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<std::uint32_t, 256> first_ = [] {
    std::array<std::uint32_t, 256> none{};
    none.fill(kNone);
    return none;
  }();
};

class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);

  struct Cut {
    std::string_view before;  // text without a special token; may be empty
    std::optional<TokenId> token;
    std::size_t begin;  // the offset of the token's own text, after white space that it strips
    std::size_t next;   // the offset to continue at; the size of the text when done
  };
  // Returns the text from `from` to the next special token, and that token. Control tokens match
  // where all their bytes are in one of `allowed`, which are ascending and do not touch.
  Cut cut(std::string_view text, std::size_t from, std::span<const TextRange> allowed) const;

 private:
  TokenTrie always_;  // user-defined tokens
  TokenTrie all_;
  std::vector<bool> user_defined_;  // by token
  // By token; empty when no token strips the white space before or after it.
  std::vector<bool> strips_before_;
  std::vector<bool> strips_after_;
};

}  // namespace pagoda::text
