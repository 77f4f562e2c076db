// Finds one text within another, in time linear in both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/jinja/heap.h"

namespace pagoda::text::jinja {

enum class Direction : std::uint8_t { kForward, kBackward };

// Knuth-Morris-Pratt search: after a mismatch it continues with the longest part of the needle that
// ends there, and never looks back.
class Search {
 public:
  // `needle` must outlive the search. The heap counts the bytes that are read, here and in next().
  Search(std::string_view needle, Direction direction, Heap& heap);

  // Returns where the needle first begins in `text` or, backward, where it last begins; npos when
  // nowhere.
  std::size_t next(std::string_view text) const;

 private:
  char needle_at(std::size_t i) const { return at(needle_, i); }
  // Returns character i in the search's direction.
  char at(std::string_view text, std::size_t i) const {
    return direction_ == Direction::kForward ? text[i] : text[text.size() - 1 - i];
  }

  std::string_view needle_;
  Direction direction_;
  Heap& heap_;
  // For byte i, the length of the needle's longest proper prefix that ends there.
  std::vector<std::uint32_t> borders_;
};

}  // namespace pagoda::text::jinja
