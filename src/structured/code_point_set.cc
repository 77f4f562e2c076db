#include "structured/code_point_set.h"

#include <algorithm>

namespace pagoda::structured {
namespace {

constexpr std::uint32_t kSurrogateFirst = 0xD800;
constexpr std::uint32_t kSurrogateLast = 0xDFFF;

std::uint32_t utf8_length(std::uint32_t code_point) {
  if (code_point < 0x80) return 1;
  if (code_point < 0x800) return 2;
  return code_point < 0x10000 ? 3 : 4;
}

std::array<std::uint8_t, 4> utf8_bytes(std::uint32_t code_point) {
  const auto byte = [](std::uint32_t value) { return static_cast<std::uint8_t>(value); };
  const auto tail = [&](std::uint32_t shift) {
    return byte(0x80 | ((code_point >> shift) & 0x3F));
  };
  switch (utf8_length(code_point)) {
    case 1:
      return {byte(code_point)};
    case 2:
      return {byte(0xC0 | (code_point >> 6)), tail(0)};
    case 3:
      return {byte(0xE0 | (code_point >> 12)), tail(6), tail(0)};
    default:
      return {byte(0xF0 | (code_point >> 18)), tail(12), tail(6), tail(0)};
  }
}

// Cuts a range of code points of one length where the bytes before the last ones change, so that
// each piece is a product of byte ranges.
void add_sequences(std::uint32_t first, std::uint32_t last, std::vector<Utf8Sequence>& sequences) {
  const std::uint32_t length = utf8_length(first);
  for (std::uint32_t tail = 1; tail < length; ++tail) {
    const std::uint32_t mask = (1U << (6 * tail)) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      add_sequences(first, first | mask, sequences);
      return add_sequences((first | mask) + 1, last, sequences);
    }
    if ((last & mask) != mask) {
      add_sequences(first, (last & ~mask) - 1, sequences);
      return add_sequences(last & ~mask, last, sequences);
    }
  }
  sequences.push_back({utf8_bytes(first), utf8_bytes(last), length});
}

}  // namespace

CodePointSet CodePointSet::all() { return of({{0, kLast}}); }

CodePointSet CodePointSet::of(std::initializer_list<CodePointRange> ranges) {
  CodePointSet set;
  for (const CodePointRange& range : ranges) set.add(range.first, range.last);
  set.normalise();
  return set;
}

void CodePointSet::add(std::uint32_t first, std::uint32_t last) {
  ranges_.push_back({first, last});
}

void CodePointSet::add(const CodePointSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

void CodePointSet::normalise() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  std::vector<CodePointRange> joined;
  for (const CodePointRange& range : ranges_) {
    if (!joined.empty() && range.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  ranges_.clear();
  for (const CodePointRange& range : joined) {
    if (range.first < kSurrogateFirst) {
      ranges_.push_back({range.first, std::min(range.last, kSurrogateFirst - 1)});
    }
    if (range.last > kSurrogateLast) {
      ranges_.push_back({std::max(range.first, kSurrogateLast + 1), range.last});
    }
  }
}

CodePointSet CodePointSet::complement() const {
  CodePointSet other;
  std::uint32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) other.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kLast) other.add(next, kLast);
  other.normalise();
  return other;
}

CodePointSet CodePointSet::within(const CodePointSet& other) const {
  CodePointSet both;
  auto mine = ranges_.begin();
  auto theirs = other.ranges_.begin();
  while (mine != ranges_.end() && theirs != other.ranges_.end()) {
    const std::uint32_t first = std::max(mine->first, theirs->first);
    const std::uint32_t last = std::min(mine->last, theirs->last);
    if (first <= last) both.add(first, last);
    if (mine->last < theirs->last) {
      ++mine;
    } else {
      ++theirs;
    }
  }
  both.normalise();
  return both;
}

CodePointSet CodePointSet::without(const CodePointSet& other) const {
  return within(other.complement());
}

bool CodePointSet::contains(std::uint32_t code_point) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [code_point](const CodePointRange& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

std::vector<Utf8Sequence> CodePointSet::utf8_sequences() const {
  std::vector<Utf8Sequence> sequences;
  constexpr std::array<CodePointRange, 4> kLengths = {
      {{0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xFFFF}, {0x10000, kLast}}};
  for (const CodePointRange& range : ranges_) {
    for (const CodePointRange& length : kLengths) {
      const std::uint32_t first = std::max(range.first, length.first);
      const std::uint32_t last = std::min(range.last, length.last);
      if (first <= last) add_sequences(first, last, sequences);
    }
  }
  return sequences;
}

}  // namespace pagoda::structured
