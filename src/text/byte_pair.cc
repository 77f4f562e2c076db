#include "text/byte_pair.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "gguf/printable.h"
#include "text/byte_alphabet.h"
#include "text/byte_fallback.h"
#include "text/space_mark.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kWholeWordsKey = "pagoda.tokenizer.whole_words_first";

}  // namespace

BytePairEncoder::BytePairEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer,
                                 const PretokenizerFamily& family)
    : vocabulary_(vocabulary),
      pretokenizer_(std::move(pretokenizer)),
      whole_words_first_(family.whole_words_first),
      whole_newlines_first_(family.whole_newlines_first) {}

Result<std::unique_ptr<BytePairEncoder>> BytePairEncoder::load(const gguf::Metadata& metadata,
                                                               const Vocabulary& vocabulary,
                                                               const PretokenizerFamily& family) {
  ASSIGN_OR_RETURN(Pretokenizer pretokenizer, Pretokenizer::compile(family));
  std::unique_ptr<BytePairEncoder> encoder(
      new BytePairEncoder(vocabulary, std::move(pretokenizer), family));
  ASSIGN_OR_RETURN(encoder->whole_words_first_,
                   metadata.flag_or(kWholeWordsKey, family.whole_words_first));
  encoder->read_pieces();
  // Kimi's vocabulary is in the order of its merges, and the file has no list of them.
  if (!metadata.contains(kMerges) && vocabulary.pretokenizer == "kimi-k2") {
    encoder->derive_merges();
  } else {
    RETURN_IF_ERROR(encoder->read_merges(metadata));
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(byte);
    encoder->byte_symbols_[byte] = encoder->index_.find({&character, 1});
  }
  return encoder;
}

void BytePairEncoder::read_pieces() {
  pieces_.reserve(vocabulary_.size());
  std::string bytes;
  for (std::uint32_t i = 0; i < vocabulary_.size(); ++i) {
    bytes.clear();
    if (vocabulary_.mergeable(TokenId(i))) {
      if (plain()) {
        bytes = vocabulary_.texts[i];
      } else {
        append_alphabet_bytes(vocabulary_.texts[i], bytes);
      }
    }
    pieces_.append(bytes);
    if (!bytes.empty()) index_.insert(i);
  }
}

std::uint32_t BytePairEncoder::symbol_of(std::string_view piece) {
  const std::uint32_t known = index_.find(piece);
  if (known != PieceIndex::kNone) return known;
  pieces_.append(piece);
  return index_.insert(static_cast<std::uint32_t>(pieces_.size() - 1));
}

Status BytePairEncoder::read_merges(const gguf::Metadata& metadata) {
  ASSIGN_OR_RETURN(const std::vector<std::string_view> merges, metadata.texts(kMerges));
  merges_.reserve(merges.size());
  std::string joined;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string_view merge = merges[i];
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: {}[{}] is '{}', not two pieces with a "
                               "space between",
                               metadata.source(), kMerges, i, gguf::printable(merge, 60))};
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    joined.clear();
    std::size_t left_bytes = left.size();
    if (plain()) {
      joined.append(left).append(right);
      merges_span_words_ = merges_span_words_ || spans_marked_words(joined);
    } else {
      // A merge with letters outside the alphabet can never be reached from bytes.
      if (!append_alphabet_bytes(left, joined)) continue;
      left_bytes = joined.size();
      if (!append_alphabet_bytes(right, joined)) continue;
    }
    const std::string_view bytes = joined;
    merges_.insert(symbol_of(bytes.substr(0, left_bytes)), symbol_of(bytes.substr(left_bytes)),
                   {static_cast<std::uint32_t>(i), symbol_of(bytes)});
  }
  return ok_status();
}

// Any two tokens whose bytes together are a token merge into it, lower ids first.
void BytePairEncoder::derive_merges() {
  for (std::uint32_t i = 0; i < vocabulary_.size(); ++i) {
    const std::string_view bytes = pieces_[i];
    if (index_.find(bytes) != i) continue;
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      const std::uint32_t left = index_.find(bytes.substr(0, cut));
      const std::uint32_t right = index_.find(bytes.substr(cut));
      if (left == PieceIndex::kNone || right == PieceIndex::kNone) continue;
      merges_.insert(left, right, {i, i});
    }
  }
}

void BytePairEncoder::encode(std::string_view fragment, bool after_break,
                             EncodeWorkspace& workspace, std::size_t tokens_max,
                             std::vector<TokenId>& tokens) const {
  std::string_view text = fragment;
  if (plain()) {
    workspace.marked.clear();
    if (after_break && vocabulary_.prefixes_space(fragment)) workspace.marked.append(kSpaceMark);
    append_with_marks(fragment, workspace.marked);
    text = workspace.marked;
  }
  pretokenizer_.split(text, workspace.split, workspace.ends);
  std::uint32_t begin = 0;
  for (const std::uint32_t end : workspace.ends) {
    if (tokens.size() > tokens_max) return;
    encode_piece(text.substr(begin, end - begin), workspace, tokens);
    begin = end;
  }
}

void BytePairEncoder::encode_piece(std::string_view piece, EncodeWorkspace& workspace,
                                   std::vector<TokenId>& tokens) const {
  const auto encode_new = [&](std::string_view word) {
    encode_word(word, workspace.merges, tokens);
  };
  if (!plain() || merges_span_words_) {
    encode_cached(piece, workspace.words, tokens, encode_new);
    return;
  }
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t end = marked_word_end(piece, at);
    encode_cached(piece.substr(at, end - at), workspace.words, tokens, encode_new);
    at = end;
  }
}

void BytePairEncoder::encode_word(std::string_view word, MergeList& list,
                                  std::vector<TokenId>& tokens) const {
  const bool newlines =
      whole_newlines_first_ && word.find_first_not_of('\n') == std::string_view::npos;
  if (whole_words_first_ || newlines) {
    const std::uint32_t symbol = index_.find(word);
    if (is_token(symbol)) {
      tokens.push_back(TokenId(symbol));
      return;
    }
  }
  list.clear();
  for (std::size_t at = 0; at < word.size();) {
    std::size_t bytes = 1;
    if (plain()) bytes = std::max<std::size_t>(1, utf8_char_bytes(word.substr(at)));
    list.append(static_cast<std::uint32_t>(at),
                bytes == 1 ? byte_symbols_[static_cast<std::uint8_t>(word[at])]
                           : index_.find(word.substr(at, bytes)));
    at += bytes;
  }
  list.merge(static_cast<std::uint32_t>(word.size()),
             [&](const MergeList::Span& left, const MergeList::Span& right) {
               return merges_.find(left.symbol, right.symbol);
             });
  list.for_each([&](const MergeList::Span& span) {
    if (is_token(span.symbol)) {
      tokens.push_back(TokenId(span.symbol));
    } else {
      append_byte_tokens(word.substr(span.begin, span.end - span.begin), vocabulary_, tokens);
    }
  });
}

}  // namespace pagoda::text
