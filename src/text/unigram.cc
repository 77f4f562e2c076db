#include "text/unigram.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "text/space_mark.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

// An unknown character scores this much less than the worst token.
constexpr double kUnknownPenalty = 10.0;

// The best way to the end of a prefix of the text.
struct BestEnd {
  double score = 0;
  std::uint32_t begin = UINT32_MAX;  // of the last token; UINT32_MAX: no way was found
  std::uint32_t token = UINT32_MAX;  // UINT32_MAX: an unknown character
};

}  // namespace

UnigramEncoder::UnigramEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer)
    : vocabulary_(vocabulary), pretokenizer_(std::move(pretokenizer)) {
  double worst = std::numeric_limits<double>::infinity();
  for (std::uint32_t i = 0; i < vocabulary.size(); ++i) {
    worst = std::min(worst, vocabulary.exact_scores[i]);
    has_byte_tokens_ = has_byte_tokens_ || vocabulary.types[i] == TokenType::kByte;
    const bool is_piece =
        vocabulary.mergeable(TokenId(i)) && vocabulary.types[i] != TokenType::kUnused;
    if (is_piece) insert(vocabulary.texts[i], i);
  }
  unknown_score_ = worst - kUnknownPenalty;
}

Result<std::unique_ptr<FragmentEncoder>> UnigramEncoder::load(const Vocabulary& vocabulary,
                                                              const PretokenizerFamily& family) {
  ASSIGN_OR_RETURN(Pretokenizer pretokenizer, Pretokenizer::compile(family));
  return std::unique_ptr<FragmentEncoder>(new UnigramEncoder(vocabulary, std::move(pretokenizer)));
}

void UnigramEncoder::insert(std::string_view text, std::uint32_t token) {
  if (text.empty()) return;
  std::uint32_t node = 0;
  for (const char byte : text) {
    const std::uint64_t edge = std::uint64_t{node} << 8 | static_cast<std::uint8_t>(byte);
    const auto [child, is_new] =
        children_.emplace(edge, static_cast<std::uint32_t>(token_of_node_.size()));
    if (is_new) token_of_node_.push_back(kNone);
    node = child->second;
  }
  if (token_of_node_[node] == kNone) token_of_node_[node] = token;
}

void UnigramEncoder::encode(std::string_view fragment, bool after_break, EncodeWorkspace& workspace,
                            std::size_t tokens_max, std::vector<TokenId>& tokens) const {
  if (fragment.empty()) return;
  workspace.marked.clear();
  if (after_break && vocabulary_.prefixes_space(fragment)) workspace.marked.append(kSpaceMark);
  append_with_marks(fragment, workspace.marked);
  const std::string_view text = workspace.marked;
  pretokenizer_.split(text, workspace.split, workspace.ends);
  const auto encode_new = [&](std::string_view word) { encode_word(word, tokens); };
  std::uint32_t begin = 0;
  for (const std::uint32_t end : workspace.ends) {
    if (tokens.size() > tokens_max) return;
    encode_cached(text.substr(begin, end - begin), workspace.words, tokens, encode_new);
    begin = end;
  }
}

void UnigramEncoder::encode_word(std::string_view word, std::vector<TokenId>& tokens) const {
  std::vector<BestEnd> best(word.size() + 1);
  const auto offer = [&](std::size_t begin, std::size_t end, double score, std::uint32_t token) {
    const double sum = best[begin].score + score;
    if (best[end].begin != UINT32_MAX && !(sum > best[end].score)) return;
    best[end] = {sum, static_cast<std::uint32_t>(begin), token};
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t character = std::max<std::size_t>(1, utf8_char_bytes(word.substr(at)));
    bool is_known = false;
    std::uint32_t node = 0;
    for (std::size_t end = at; end < word.size();) {
      const auto child =
          children_.find(std::uint64_t{node} << 8 | static_cast<std::uint8_t>(word[end]));
      if (child == children_.end()) break;
      node = child->second;
      ++end;
      const std::uint32_t token = token_of_node_[node];
      if (token == kNone) continue;
      is_known = is_known || end - at == character;
      offer(at, end, vocabulary_.exact_scores[token], token);
    }
    if (!is_known) offer(at, at + character, unknown_score_, kNone);
    at += character;
  }
  std::vector<BestEnd> ends;  // the last comes first; `score` is unused and `begin` leads back
  for (std::size_t end = word.size(); end > 0; end = best[end].begin) ends.push_back(best[end]);
  for (std::size_t i = ends.size(); i > 0;) {
    const BestEnd& first = ends[--i];
    if (first.token != kNone) {
      tokens.push_back(TokenId(first.token));
      continue;
    }
    while (i > 0 && ends[i - 1].token == kNone) --i;
    const std::size_t end = i == 0 ? word.size() : ends[i - 1].begin;
    append_unknown(word.substr(first.begin, end - first.begin), tokens);
  }
}

void UnigramEncoder::append_unknown(std::string_view bytes, std::vector<TokenId>& tokens) const {
  const auto token_of = [&](char byte) {
    return vocabulary_.byte_tokens[static_cast<std::uint8_t>(byte)];
  };
  const bool by_bytes = has_byte_tokens_ && std::all_of(bytes.begin(), bytes.end(), [&](char byte) {
                          return token_of(byte).has_value();
                        });
  if (by_bytes) {
    for (const char byte : bytes) tokens.push_back(*token_of(byte));
  } else if (vocabulary_.unknown) {
    tokens.push_back(*vocabulary_.unknown);
  }
}

}  // namespace pagoda::text
