#include "text/special_tokens.h"

#include <algorithm>
#include <iterator>

#include "text/utf8.h"
#include "text/white_space.h"

namespace pagoda::text {
namespace {

// Returns the bytes of the white space that `text` begins with.
std::size_t leading_space_bytes(std::string_view text) {
  std::size_t at = 0;
  for (;;) {
    const std::string_view rest = text.substr(at);
    const std::size_t bytes = utf8_char_bytes(rest);
    if (bytes == 0 || !is_white_space(utf8_code_point(rest, bytes))) return at;
    at += bytes;
  }
}

// Returns the bytes of the white space that `text` ends with.
std::size_t trailing_space_bytes(std::string_view text) {
  constexpr std::size_t kSpaceBytesMax = 3;
  std::size_t end = text.size();
  for (bool found = true; found;) {
    found = false;
    for (std::size_t bytes = 1; bytes <= std::min(kSpaceBytesMax, end) && !found; ++bytes) {
      const std::string_view last = text.substr(end - bytes, bytes);
      found = utf8_char_bytes(last) == bytes && is_white_space(utf8_code_point(last, bytes));
      if (found) end -= bytes;
    }
  }
  return text.size() - end;
}

bool is_within(const TokenTrie::Match& match, std::span<const TextRange> ranges) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), match.begin,
                       [](std::size_t byte, const TextRange& range) { return byte < range.begin; });
  return after != ranges.begin() && match.end <= std::prev(after)->end;
}

}  // namespace

std::uint32_t TokenTrie::child_of(std::uint32_t node, char byte) const {
  if (node == 0) return first_[static_cast<unsigned char>(byte)];
  std::uint32_t child = nodes_[node].child;
  while (child != kNone && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

void TokenTrie::insert(std::string_view text, TokenId id) {
  if (text.empty()) return;
  std::uint32_t node = 0;
  for (const char byte : text) {
    std::uint32_t child = child_of(node, byte);
    if (child == kNone) {
      child = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({kNone, kNone, nodes_[node].child, byte});
      nodes_[node].child = child;
      if (node == 0) first_[static_cast<unsigned char>(byte)] = child;
    }
    node = child;
  }
  if (nodes_[node].token == kNone) nodes_[node].token = id.value();
}

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary)
    : user_defined_(vocabulary.size()),
      strips_before_(vocabulary.strips_before),
      strips_after_(vocabulary.strips_after) {
  for (std::uint32_t i = 0; i < vocabulary.size(); ++i) {
    const TokenId id(i);
    const TokenType type = vocabulary.type(id);
    const bool user_defined = type == TokenType::kUserDefined;
    if (!user_defined && type != TokenType::kControl && type != TokenType::kUnknown) continue;
    const std::string_view text = vocabulary.texts[i];
    all_.insert(text, id);
    user_defined_[i] = user_defined;
    if (user_defined) always_.insert(text, id);
  }
}

SpecialTokens::Cut SpecialTokens::cut(std::string_view text, std::size_t from,
                                      std::span<const TextRange> allowed) const {
  const TokenTrie& trie = allowed.empty() ? always_ : all_;
  const Cut rest{text.substr(from), std::nullopt, text.size(), text.size()};
  if (trie.empty()) return rest;
  const auto match = trie.find_next(text, from, [&](const TokenTrie::Match& found) {
    return user_defined_[found.id.value()] || is_within(found, allowed);
  });
  if (!match) return rest;
  std::string_view before = text.substr(from, match->begin - from);
  if (!strips_before_.empty() && strips_before_[match->id.value()]) {
    before.remove_suffix(trailing_space_bytes(before));
  }
  std::size_t next = match->end;
  if (!strips_after_.empty() && strips_after_[match->id.value()]) {
    next += leading_space_bytes(text.substr(next));
  }
  return {before, match->id, match->begin, next};
}

}  // namespace pagoda::text
