#include <algorithm>

#include "structured/program.h"

namespace pagoda::structured {

std::uint32_t LengthRows::add(std::uint32_t columns) {
  rows_.push_back({static_cast<std::uint32_t>(words_.size()), columns});
  words_.resize(words_.size() + (columns + std::size_t{63}) / 64, 0);
  return static_cast<std::uint32_t>(rows_.size() - 1);
}

void LengthRows::set(std::uint32_t row, std::uint32_t length) {
  words_[rows_[row].first + length / 64] |= std::uint64_t{1} << (length % 64);
}

bool LengthRows::has_any(std::uint32_t row, std::uint32_t least, std::uint32_t most) const {
  const Row& at = rows_[row];
  if (least >= at.columns) return false;
  const std::uint32_t last = std::min(most, at.columns - 1);
  for (std::uint32_t word = least / 64; word <= last / 64; ++word) {
    std::uint64_t bits = words_[at.first + word];
    if (word == least / 64) bits &= ~std::uint64_t{0} << (least % 64);
    if (word == last / 64) bits &= ~std::uint64_t{0} >> (63 - last % 64);
    if (bits != 0) return true;
  }
  return false;
}

}  // namespace pagoda::structured
