#include "structured/token_characters.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>

#include "structured/wide_characters.h"

namespace pagoda::structured {
namespace {

// The kinds of bytes: letters, then these.
enum ByteKind : std::uint8_t {
  kDigits = 52,
  kSpace,
  kPoint,
  kQuote,
  kBackslash,
  kDashes,
  kLineEnds,
  kIrregular,  // no byte: broken characters and line separators beyond ASCII
  kOtherMarks,
  kBeyondAscii,
  kControls,
  kRepeats,  // no byte: another kind comes with more than one character
};
static_assert(kRepeats == 63);

constexpr std::array<std::uint8_t, 256> kByteKinds = [] {
  std::array<std::uint8_t, 256> kinds{};
  kinds.fill(kOtherMarks);
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    if (byte < 0x20 || byte == 0x7F) kinds[byte] = kControls;
    if (byte >= 0x80) kinds[byte] = kBeyondAscii;
  }
  for (std::uint32_t i = 0; i < 26; ++i) {
    kinds['a' + i] = static_cast<std::uint8_t>(i);
    kinds['A' + i] = static_cast<std::uint8_t>(26 + i);
  }
  for (std::uint32_t i = 0; i < 10; ++i) kinds['0' + i] = kDigits;
  kinds[' '] = kSpace;
  kinds['.'] = kPoint;
  kinds['"'] = kQuote;
  kinds['\\'] = kBackslash;
  kinds['-'] = kinds['_'] = kDashes;
  kinds['\n'] = kinds['\r'] = kLineEnds;
  return kinds;
}();

constexpr std::uint64_t kIrregularBit = std::uint64_t{1} << kIrregular;
constexpr std::uint64_t kRepeatsBit = std::uint64_t{1} << kRepeats;
// Lowercase letters come again in most tokens: kRepeats is not about them.
constexpr std::uint64_t kRepeatedKinds = (std::uint64_t{1} << 26) - 1;

struct Shape {
  std::uint32_t characters = 0;  // that begin in a text
  std::uint64_t kinds = 0;       // as of tokens
};

Shape shape_of(std::string_view bytes) {
  Shape shape;
  std::uint8_t state = kWideWhole;
  std::uint8_t regular = kWideWhole;  // without line separators
  for (const char one : bytes) {
    const auto byte = static_cast<std::uint8_t>(one);
    const std::uint64_t kind = byte_kind(byte);
    if (state == kWideWhole) {
      ++shape.characters;
      if ((shape.kinds & kind & ~kRepeatedKinds) != 0) shape.kinds |= kRepeatsBit;
    }
    shape.kinds |= kind;
    if (state == kWideWhole && byte < 0x80) continue;
    state = wide_characters(true)[state][byte];
    if (regular != kWideDead) regular = wide_characters(false)[regular][byte];
    if (regular == kWideDead) shape.kinds |= kIrregularBit;
    if (state == kWideDead) state = kWideWhole;  // its characters count for nothing
  }
  return shape;
}

}  // namespace

std::uint64_t byte_kind(std::uint8_t byte) { return std::uint64_t{1} << kByteKinds[byte]; }

std::uint8_t next_within(const CharacterSet& set, std::uint8_t state, std::uint8_t byte) {
  if (byte < 0x80) return state == kWideWhole && set.ascii.test(byte) ? kWideWhole : kWideDead;
  return set.has_wide ? wide_characters(set.has_separators)[state][byte] : kWideDead;
}

namespace {

// How many characters begin in a text; kUnbounded where one is not in the set.
std::uint32_t count_within(const CharacterSet& set, std::string_view text) {
  std::uint8_t state = kWideWhole;
  std::uint32_t count = 0;
  for (const char one : text) {
    if (state == kWideWhole) ++count;
    state = next_within(set, state, static_cast<std::uint8_t>(one));
    if (state == kWideDead) return kUnbounded;
  }
  return count;
}

}  // namespace

std::uint64_t TokenCharacters::whole_kinds(const CharacterSet& set) {
  std::uint64_t missing = kIrregularBit | kRepeatsBit;
  if (!set.has_wide) missing |= byte_kind(0x80);
  for (std::uint32_t byte = 0; byte < 0x80; ++byte) {
    if (!set.ascii.test(byte)) missing |= byte_kind(static_cast<std::uint8_t>(byte));
  }
  return ~missing;
}

TokenCharacters::TokenCharacters(const VocabularyTrie& trie, std::size_t vocabulary)
    : at_most_(kLengthMasks) {
  const std::span<const VocabularyTrie::Node> nodes = trie.nodes();
  for (auto& mask : at_most_) mask.resize(mask_words(vocabulary), 0);
  std::vector<std::uint32_t> parents(nodes.size());
  std::vector<std::uint32_t> path(trie.bytes_max() + 1, 0);
  std::string bytes(trie.bytes_max(), '\0');
  below_.resize(nodes.size());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const VocabularyTrie::Node& node = nodes[i];
    bytes[node.depth - 1u] = static_cast<char>(node.byte);
    path[node.depth] = i;
    parents[i] = node.depth > 1 ? path[node.depth - 1u] : i;
    below_[i] = byte_kind(node.byte);
    if (node.number == VocabularyTrie::kNoNumber) continue;
    const Shape shape = shape_of(std::string_view(bytes).substr(0, node.depth));
    below_[i] |= shape.kinds & kIrregularBit;
    nodes_.push_back(i);
    numbers_.push_back(node.number);
    kinds_.push_back(shape.kinds);
    characters_.push_back(static_cast<std::uint16_t>(shape.characters));
    for (std::uint32_t count = shape.characters; count < kLengthMasks; ++count) {
      set_mask_bit(at_most_[count], node.number);
    }
    if (shape.characters >= kLengthMasks) long_.push_back({shape.characters, node.number});
  }
  for (std::size_t i = nodes.size(); i-- > 0;) below_[parents[i]] |= below_[i];
  std::sort(long_.begin(), long_.end(),
            [](const LongToken& a, const LongToken& b) { return a.characters > b.characters; });
}

void TokenCharacters::add_within(const CharacterSet& set, const Subtree& below,
                                 std::string_view prefix, std::uint32_t room,
                                 std::span<const std::string> bytes_of,
                                 std::span<MaskWord> mask) const {
  // Kinds of which the set has no byte are refused, but for those of the prefix; where it has some,
  // or the prefix has one that it has not, and a token may have that again, its bytes decide.
  const std::uint64_t whole = whole_kinds(set);
  std::uint64_t none = kIrregularBit;
  if (!set.has_wide) none |= byte_kind(0x80);
  for (std::uint32_t byte = 0; byte < 0x80; ++byte)
    none |= byte_kind(static_cast<std::uint8_t>(byte));
  for (std::uint32_t byte = 0; byte < 0x80; ++byte) {
    if (set.ascii.test(byte)) none &= ~byte_kind(static_cast<std::uint8_t>(byte));
  }
  if (set.has_wide) none &= ~kIrregularBit;
  none &= ~kRepeatsBit;
  const Shape before = shape_of(prefix);
  const std::uint64_t outside = before.kinds & none;
  std::uint64_t unsure = ~whole & ~none & ~kRepeatsBit;
  if (outside != 0) unsure |= kRepeatsBit | (outside & (kRepeatedKinds | kIrregularBit));
  const std::uint64_t refused = none & ~outside;
  const bool fits_all = room == kUnbounded;
  const auto first = static_cast<std::size_t>(
      std::lower_bound(nodes_.begin(), nodes_.end(), below.first) - nodes_.begin());
  const auto end = static_cast<std::size_t>(
      std::lower_bound(nodes_.begin(), nodes_.end(), below.end) - nodes_.begin());
  const auto decide = [&](std::size_t i) {
    if ((kinds_[i] & unsure) != 0) {
      const std::uint32_t count =
          count_within(set, std::string_view(bytes_of[numbers_[i]]).substr(prefix.size()));
      return count != kUnbounded && count <= room;
    }
    return fits_all || characters_[i] - before.characters <= room;
  };
  for (std::size_t begin = first; begin < end; begin += 64) {
    const std::size_t count = std::min<std::size_t>(64, end - begin);
    std::uint64_t open = 0;
    for (std::size_t i = 0; i < count; ++i) {
      open |= std::uint64_t{(kinds_[begin + i] & refused) == 0} << i;
    }
    for (; open != 0; open &= open - 1) {
      const std::size_t i = begin + static_cast<std::size_t>(std::countr_zero(open));
      if (decide(i)) set_mask_bit(mask, numbers_[i]);
    }
  }
}

void TokenCharacters::keep_short(std::uint32_t characters, std::span<MaskWord> mask) const {
  if (characters < kLengthMasks) {
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] &= at_most_[characters][i];
    return;
  }
  for (const LongToken& token : long_) {
    if (token.characters <= characters) break;
    mask[token.number / 64] &= ~(MaskWord{1} << (token.number % 64));
  }
}

}  // namespace pagoda::structured
