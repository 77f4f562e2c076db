#include "text/jinja/search.h"

#include <cstring>

namespace pagoda::text::jinja {

Search::Search(std::string_view needle, Direction direction, Heap& heap)
    : needle_(needle), direction_(direction), heap_(heap) {
  heap.read_characters(needle.size());
  heap.reserve(needle.size() * sizeof borders_[0]);
  borders_.resize(needle.size());
  std::uint32_t matched = 0;
  for (std::size_t i = 1; i < needle.size(); ++i) {
    while (matched > 0 && needle_at(i) != needle_at(matched)) matched = borders_[matched - 1];
    if (needle_at(i) == needle_at(matched)) ++matched;
    borders_[i] = matched;
  }
}

std::size_t Search::next(std::string_view text) const {
  const std::size_t size = needle_.size();
  if (size == 0) return direction_ == Direction::kForward ? 0 : text.size();
  std::size_t seen = text.size();
  std::size_t compared = 0;  // those of the seen bytes that were not skipped
  std::size_t matched = 0;
  std::size_t found = std::string_view::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (matched == 0 && direction_ == Direction::kForward) {
      const void* const first = std::memchr(text.data() + i, needle_[0], text.size() - i);
      if (first == nullptr) break;
      i = static_cast<std::size_t>(static_cast<const char*>(first) - text.data());
    }
    ++compared;
    while (matched > 0 && at(text, i) != needle_at(matched)) matched = borders_[matched - 1];
    if (at(text, i) == needle_at(matched)) ++matched;
    if (matched == size) {
      found = direction_ == Direction::kForward ? i + 1 - size : text.size() - 1 - i;
      seen = i + 1;
      break;
    }
  }
  heap_.read_bytes(seen);
  heap_.read_characters(compared);
  return found;
}

}  // namespace pagoda::text::jinja
