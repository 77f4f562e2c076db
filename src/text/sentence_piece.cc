#include "text/sentence_piece.h"

#include <algorithm>
#include <numeric>

#include "text/byte_fallback.h"
#include "text/space_mark.h"
#include "text/utf8.h"

namespace pagoda::text {

SentencePieceEncoder::SentencePieceEncoder(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary), index_(vocabulary.texts), ranks_(vocabulary.size()) {
  for (std::uint32_t i = 0; i < vocabulary.size(); ++i) {
    const std::string_view text = vocabulary.texts[i];
    if (text.empty() || !vocabulary.mergeable(TokenId(i))) continue;
    index_.insert(i);
    tokens_span_words_ = tokens_span_words_ || spans_marked_words(text);
  }
  const std::vector<float>& scores = vocabulary.scores;
  std::vector<std::uint32_t> order(vocabulary.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const bool same = scores[order[i]] == scores[order[i - 1]];
    ranks_[order[i]] = ranks_[order[i - 1]] + (same ? 0 : 1);
  }
}

void SentencePieceEncoder::encode(std::string_view fragment, bool after_break,
                                  EncodeWorkspace& workspace, std::size_t tokens_max,
                                  std::vector<TokenId>& tokens) const {
  if (fragment.empty()) return;
  workspace.marked.clear();
  if (after_break && vocabulary_.prefixes_space(fragment)) workspace.marked.append(kSpaceMark);
  append_with_marks(fragment, workspace.marked);
  const std::string_view text = workspace.marked;
  const auto encode_new = [&](std::string_view word) { encode_word(word, workspace, tokens); };
  for (std::size_t at = 0; at < text.size() && tokens.size() <= tokens_max;) {
    const std::size_t end = tokens_span_words_ ? text.size() : marked_word_end(text, at);
    encode_cached(text.substr(at, end - at), workspace.words, tokens, encode_new);
    at = end;
  }
}

void SentencePieceEncoder::encode_word(std::string_view word, EncodeWorkspace& workspace,
                                       std::vector<TokenId>& tokens) const {
  MergeList& list = workspace.merges;
  workspace.unused_left_bytes.clear();
  list.clear();
  for (std::size_t at = 0; at < word.size();) {
    list.append(static_cast<std::uint32_t>(at), 0);
    at += std::max<std::size_t>(1, utf8_char_bytes(word.substr(at)));
  }
  list.merge(static_cast<std::uint32_t>(word.size()),
             [&](const MergeList::Span& left, const MergeList::Span& right) -> Merge {
               const std::uint32_t token =
                   index_.find(word.substr(left.begin, right.end - left.begin));
               if (token == PieceIndex::kNone) return {};
               if (vocabulary_.types[token] == TokenType::kUnused) {
                 workspace.unused_left_bytes[token] = left.end - left.begin;
               }
               return {ranks_[token], token};
             });
  list.for_each([&](const MergeList::Span& span) {
    append_tokens(word.substr(span.begin, span.end - span.begin), workspace, tokens);
  });
}

void SentencePieceEncoder::append_tokens(std::string_view piece, const EncodeWorkspace& workspace,
                                         std::vector<TokenId>& tokens) const {
  std::vector<std::string_view> undone;  // the last comes first
  while (true) {
    const std::uint32_t token = index_.find(piece);
    const auto unused = workspace.unused_left_bytes.find(token);
    if (unused != workspace.unused_left_bytes.end()) {
      undone.push_back(piece.substr(unused->second));
      piece = piece.substr(0, unused->second);
      continue;
    }
    if (token == PieceIndex::kNone) {
      append_byte_tokens(piece, vocabulary_, tokens);
    } else {
      tokens.push_back(TokenId(token));
    }
    if (undone.empty()) return;
    piece = undone.back();
    undone.pop_back();
  }
}

}  // namespace pagoda::text
