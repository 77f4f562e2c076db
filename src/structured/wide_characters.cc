#include "structured/wide_characters.h"

namespace pagoda::structured {
namespace {

enum WideState : std::uint8_t {
  kOneMissing = kWideWhole + 1,
  kTwoMissing,
  kThreeMissing,
  kAfterE0,  // the next byte has a range of its own
  kAfterED,
  kAfterF0,
  kAfterF4,
  kAfterE2,
  kAfterE280,
};
static_assert(kAfterE280 + 1 == kWideStates);

WideCharacters build_wide(bool separators) {
  WideCharacters next;
  for (auto& row : next) row.fill(kWideDead);
  const auto range = [&](std::uint8_t from, unsigned first, unsigned last, std::uint8_t to) {
    for (unsigned byte = first; byte <= last; ++byte) next[from][byte] = to;
  };
  range(kWideWhole, 0xC2, 0xDF, kOneMissing);
  range(kWideWhole, 0xE0, 0xE0, kAfterE0);
  range(kWideWhole, 0xE1, 0xEF, kTwoMissing);
  range(kWideWhole, 0xED, 0xED, kAfterED);
  range(kWideWhole, 0xF0, 0xF0, kAfterF0);
  range(kWideWhole, 0xF1, 0xF3, kThreeMissing);
  range(kWideWhole, 0xF4, 0xF4, kAfterF4);
  range(kOneMissing, 0x80, 0xBF, kWideWhole);
  range(kTwoMissing, 0x80, 0xBF, kOneMissing);
  range(kThreeMissing, 0x80, 0xBF, kTwoMissing);
  range(kAfterE0, 0xA0, 0xBF, kOneMissing);
  range(kAfterED, 0x80, 0x9F, kOneMissing);
  range(kAfterF0, 0x90, 0xBF, kTwoMissing);
  range(kAfterF4, 0x80, 0x8F, kTwoMissing);
  if (separators) return next;
  // E2 80 A8 and E2 80 A9.
  range(kWideWhole, 0xE2, 0xE2, kAfterE2);
  range(kAfterE2, 0x80, 0x80, kAfterE280);
  range(kAfterE2, 0x81, 0xBF, kOneMissing);
  range(kAfterE280, 0x80, 0xA7, kWideWhole);
  range(kAfterE280, 0xAA, 0xBF, kWideWhole);
  return next;
}

}  // namespace

const WideCharacters& wide_characters(bool separators) {
  static const WideCharacters kAll = build_wide(true);
  static const WideCharacters kOthers = build_wide(false);
  return separators ? kAll : kOthers;
}

WideSet wide_set(const CodePointSet& set) {
  static const CodePointSet kAscii = CodePointSet::of({{0, 0x7F}});
  static const CodePointSet kBeyond = CodePointSet::all().without(kAscii);
  static const CodePointSet kOthers = kBeyond.without(CodePointSet::of({{0x2028, 0x2029}}));
  if (!set.contains(CodePointSet::kLast)) return WideSet::kNone;
  const CodePointSet beyond = set.without(kAscii);
  if (beyond.ranges() == kBeyond.ranges()) return WideSet::kAll;
  return beyond.ranges() == kOthers.ranges() ? WideSet::kOther : WideSet::kNone;
}

}  // namespace pagoda::structured
