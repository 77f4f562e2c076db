// Tokens that are cut out of a text before anything else looks at it.
//
// Leftmost first, at one place the longest. User-defined tokens are cut always, control and
// unknown tokens only when asked. Immutable after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// A set of texts, each with a token. Looking for the next one costs one table access a byte, plus
// at most the longest text's bytes where a first byte fits.
class TokenTrie {
 public:
  void insert(std::string_view text, TokenId id);  // the first of equal texts stays

  struct Match {
    std::size_t begin;
    std::size_t end;
    TokenId id;
  };
  std::optional<Match> find_next(std::string_view text, std::size_t from) const;
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
  std::optional<Match> longest_at(std::string_view text, std::size_t at) const;

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
    std::string_view before;  // text with no special token in it; may be empty
    std::optional<TokenId> token;
    std::size_t next;  // where to go on; the size of the text when done
  };
  // The text from `from` to the next special token, and that token.
  Cut cut(std::string_view text, std::size_t from, bool special) const;

 private:
  TokenTrie always_;  // user-defined
  TokenTrie all_;
  std::vector<bool> strips_after_;  // by token; empty when none does
};

}  // namespace pagoda::text
