#include "text/token_places.h"

#include <algorithm>

namespace pagoda::text {

std::size_t TokenPlaces::spelt(std::string_view bytes, std::size_t at) const {
  const std::size_t begin = at;
  const bool marks = vocabulary_.family != TokenizerFamily::kBytePair;
  for (const char byte : bytes) {
    const std::string_view rest = fragment_.substr(at);
    if (!rest.empty() && rest.front() == byte) {
      ++at;
    } else if (marks && byte == ' ' && rest.starts_with(kSpaceMark)) {
      at += kSpaceMark.size();
    } else {
      return kNoMatch;
    }
  }
  return at - begin;
}

std::size_t TokenPlaces::next(TokenId id) {
  std::string_view bytes = vocabulary_.bytes[id.value()];
  if (before_space_ && bytes.starts_with(' ')) bytes.remove_prefix(1);
  before_space_ = false;
  std::size_t begin = std::min(at_, fragment_.size());
  std::size_t length = spelt(bytes, begin);
  if (length == kNoMatch && vocabulary_.unknown == id) {
    length = begin < fragment_.size() ? 1 : 0;
  }
  while (length == kNoMatch && begin < fragment_.size()) length = spelt(bytes, ++begin);
  if (length == kNoMatch) return std::min(at_, fragment_.size());
  at_ = begin + length;
  return begin;
}

}  // namespace pagoda::text
