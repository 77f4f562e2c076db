#include "structured/string_slice.h"

#include <algorithm>
#include <array>
#include <string>

#include "structured/string_automaton.h"

namespace pagoda::structured {

struct StringSlice::Exit {
  std::string suffix;
  CountedToken token;
};

StringSlice::StringSlice(const VocabularyTrie& tokens, std::size_t vocabulary, std::uint8_t state) {
  struct Position {
    std::uint8_t state = kDead;
    std::uint32_t code_points = 0;
    std::size_t quote_depth = 0;  // where the string was closed
  };
  std::array<Position, VocabularyTrie::kBytesMax + 1> path;
  std::array<char, VocabularyTrie::kBytesMax + 1> bytes{};
  path[0].state = state;
  std::vector<CountedToken> inner;
  std::vector<Exit> exits;
  const std::span<const VocabularyTrie::Node> nodes = tokens.nodes();
  for (std::size_t i = 0; i < nodes.size();) {
    const VocabularyTrie::Node& node = nodes[i];
    const Position& before = path[node.depth - 1];
    Position& after = path[node.depth];
    bytes[node.depth] = static_cast<char>(node.byte);
    after = before;
    if (before.state != kClosed) {
      after.state = string_automaton().next[before.state][node.byte];
      after.code_points += begins_character(before.state, node.byte) ? 1 : 0;
      if (after.state == kClosed) after.quote_depth = node.depth;
    }
    if (after.state == kDead) {
      i = node.skip;
      continue;
    }
    if (node.number != VocabularyTrie::kNoNumber) {
      const CountedToken token = {after.code_points, node.number};
      if (after.state == kClosed) {
        exits.push_back(
            {std::string(bytes.data() + after.quote_depth + 1, bytes.data() + node.depth + 1),
             token});
      } else {
        inner.push_back(token);
      }
    }
    ++i;
  }
  keep_inner(std::move(inner), vocabulary);
  keep_exits(std::move(exits));
}

void StringSlice::keep_inner(std::vector<CountedToken> inner, std::size_t vocabulary) {
  inner_.assign(kRoomMasks, std::vector<MaskWord>(mask_words(vocabulary), 0));
  all_inner_.assign(mask_words(vocabulary), 0);
  for (const CountedToken& token : inner) {
    set_mask_bit(all_inner_, token.token);
    inner_code_points_max_ = std::max(inner_code_points_max_, token.code_points);
    for (std::uint32_t room = token.code_points; room < kRoomMasks; ++room) {
      set_mask_bit(inner_[room], token.token);
    }
    if (token.code_points >= kRoomMasks) long_inner_.push_back(token);
  }
  std::sort(
      long_inner_.begin(), long_inner_.end(),
      [](const CountedToken& a, const CountedToken& b) { return a.code_points < b.code_points; });
}

void StringSlice::keep_exits(std::vector<Exit> exits) {
  std::sort(exits.begin(), exits.end(), [](const Exit& a, const Exit& b) {
    return a.suffix != b.suffix ? a.suffix < b.suffix : a.token.code_points < b.token.code_points;
  });
  std::vector<TrieEntry> entries;
  exit_begins_ = {0};
  std::string_view last;  // the empty suffix has the first number, also where no token has it
  for (const Exit& exit : exits) {
    if (exit.suffix != last) {
      exit_begins_.push_back(static_cast<std::uint32_t>(exits_.size()));
      entries.push_back({exit.suffix, static_cast<std::uint32_t>(exit_begins_.size() - 1)});
      last = exit.suffix;
    }
    exits_.push_back(exit.token);
  }
  exit_begins_.push_back(static_cast<std::uint32_t>(exits_.size()));
  suffixes_ = VocabularyTrie(std::move(entries));
}

void StringSlice::add_inner(std::uint32_t room, std::span<MaskWord> mask) const {
  const bool all_fit = room >= inner_code_points_max_;
  const std::vector<MaskWord>& fit = all_fit ? all_inner_ : inner_[std::min(room, kRoomMasks - 1)];
  for (std::size_t i = 0; i < fit.size(); ++i) mask[i] |= fit[i];
  if (all_fit) return;
  for (const CountedToken& token : long_inner_) {
    if (token.code_points > room) break;
    set_mask_bit(mask, token.token);
  }
}

void StringSlice::add_exits(std::uint32_t suffix, CountBounds counter,
                            std::span<MaskWord> mask) const {
  for (std::uint32_t i = exit_begins_[suffix]; i < exit_begins_[suffix + 1]; ++i) {
    if (exits_[i].code_points > counter.room) break;
    if (exits_[i].code_points >= counter.missing) set_mask_bit(mask, exits_[i].token);
  }
}

}  // namespace pagoda::structured
