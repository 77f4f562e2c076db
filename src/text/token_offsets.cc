#include "text/token_offsets.h"

#include <algorithm>

namespace pagoda::text {

std::size_t TokenOffsets::next(TokenId id) {
  if (vocabulary_.unknown == id) {
    const std::size_t begin = at_.offset;
    if (!is_end(at_)) step(at_);
    return begin;
  }
  const std::optional<Cursor> end = find(spelling(id));
  const std::size_t begin = at_.offset;
  if (end) at_ = *end;
  return begin;
}

bool TokenOffsets::is_in_mark(const Cursor& at) const {
  return at.before_fragment ||
         (vocabulary_.family != TokenizerFamily::kBytePair && fragment_[at.offset] == ' ');
}

char TokenOffsets::byte_at(const Cursor& at) const {
  return is_in_mark(at) ? kSpaceMark[at.into_mark] : fragment_[at.offset];
}

void TokenOffsets::step(Cursor& at) const {
  if (is_in_mark(at) && ++at.into_mark < kSpaceMark.size()) return;
  at.into_mark = 0;
  if (!at.before_fragment) ++at.offset;
  at.before_fragment = false;
}

std::string_view TokenOffsets::spelling(TokenId id) const {
  const bool as_read =
      vocabulary_.family == TokenizerFamily::kBytePair || vocabulary_.type(id) == TokenType::kByte;
  return as_read ? vocabulary_.bytes[id.value()] : vocabulary_.texts[id.value()];
}

bool TokenOffsets::is_left_out() const {
  return !vocabulary_.unknown && !vocabulary_.byte_tokens[static_cast<std::uint8_t>(byte_at(at_))];
}

// Knuth-Morris-Pratt search, which never looks back, however repetitive the spelling is. Its table
// is made only when the spelling is not at at_, which is rare.
std::optional<TokenOffsets::Cursor> TokenOffsets::find(std::string_view spelling) {
  Cursor end = at_;
  borders_.clear();
  for (std::size_t matched = 0; matched < spelling.size();) {
    if (is_end(end)) return std::nullopt;
    ++bytes_read_;
    if (byte_at(end) == spelling[matched]) {
      ++matched;
      step(end);
      continue;
    }
    if (!is_left_out()) return std::nullopt;
    if (borders_.empty()) find_borders(spelling);
    const std::size_t kept = matched == 0 ? 0 : borders_[matched - 1];
    for (std::size_t passed = kept; passed < std::max<std::size_t>(matched, 1); ++passed) {
      if (!is_left_out()) return std::nullopt;
      step(at_);
    }
    if (matched == 0) end = at_;
    matched = kept;
  }
  return end;
}

void TokenOffsets::find_borders(std::string_view spelling) {
  bytes_read_ += spelling.size();
  borders_.assign(spelling.size(), 0);
  std::uint32_t matched = 0;
  for (std::size_t i = 1; i < spelling.size(); ++i) {
    while (matched > 0 && spelling[i] != spelling[matched]) matched = borders_[matched - 1];
    if (spelling[i] == spelling[matched]) ++matched;
    borders_[i] = matched;
  }
}

}  // namespace pagoda::text
