// One text within another, in time linear in both whatever they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/jinja/heap.h"

namespace pagoda::text::jinja {

enum class Direction : std::uint8_t { kForward, kBackward };

// The search of Knuth, Morris and Pratt: after a mismatch it goes on with the longest part of the
// needle that ends there, and never looks back.
class Search {
 public:
  // `needle` outlives the search. The heap counts what is looked at, here and in next().
  Search(std::string_view needle, Direction direction, Heap& heap);

  // Where the needle first begins in `text` or, backward, where it last does; npos when nowhere.
  std::size_t next(std::string_view text) const;

 private:
  char needle_at(std::size_t i) const { return at(needle_, i); }
  // Character i in the search's direction.
  char at(std::string_view text, std::size_t i) const {
    return direction_ == Direction::kForward ? text[i] : text[text.size() - 1 - i];
  }

  std::string_view needle_;
  Direction direction_;
  Heap& heap_;
  // How long the longest beginning of the needle is that ends at byte i, but for the whole.
  std::vector<std::uint32_t> borders_;
};

}  // namespace pagoda::text::jinja
