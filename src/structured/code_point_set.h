// A set of Unicode code points as ascending ranges, and its UTF-8 form as sequences of byte ranges.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace pagoda::structured {

struct CodePointRange {
  std::uint32_t first;
  std::uint32_t last;  // included

  friend bool operator==(const CodePointRange&, const CodePointRange&) = default;
};

// A sequence of 1 to 4 byte ranges: every choice of one byte a range is a code point of the set.
struct Utf8Sequence {
  std::array<std::uint8_t, 4> low{};
  std::array<std::uint8_t, 4> high{};
  std::uint32_t length = 0;
};

class CodePointSet {
 public:
  static constexpr std::uint32_t kLast = 0x10FFFF;

  static CodePointSet all();
  static CodePointSet of(std::initializer_list<CodePointRange> ranges);

  void add(std::uint32_t first, std::uint32_t last);
  void add(const CodePointSet& other);
  // Sorts and joins the ranges, and takes surrogates out. Every function below wants this first.
  void normalise();

  CodePointSet complement() const;
  CodePointSet without(const CodePointSet& other) const;
  CodePointSet within(const CodePointSet& other) const;
  bool contains(std::uint32_t code_point) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<CodePointRange>& ranges() const { return ranges_; }

  std::vector<Utf8Sequence> utf8_sequences() const;

 private:
  std::vector<CodePointRange> ranges_;
};

}  // namespace pagoda::structured
