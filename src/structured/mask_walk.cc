#include "structured/mask_walk.h"

#include "structured/wide_characters.h"

namespace pagoda::structured {
namespace {

// A subtree with more than one of so many of the trie's nodes is worth a look for runs.
constexpr std::size_t kSubtrees = 2048;

bool is_string(const Instruction& at) {
  return at.op == Op::kString || at.op == Op::kCountedString;
}

}  // namespace

MaskWalk::MaskWalk(Automaton& automaton, const MaskVocabulary& vocabulary, CharacterRuns& runs,
                   std::span<MaskWord> mask)
    : automaton_(automaton),
      vocabulary_(vocabulary),
      runs_(runs),
      mask_(mask),
      nodes_(vocabulary.trie().nodes()) {
  const std::size_t depths = vocabulary.trie().bytes_max() + 1;
  states_.resize(depths);
  characters_.resize(depths);
  wide_.resize(depths);
  bytes_.resize(depths);
}

void MaskWalk::add(StateId state) {
  std::vector<Configuration> strings;
  std::vector<Configuration> others;
  const bool may_commit = automaton_.may_commit(state);
  for (const Configuration& one : automaton_.configurations(state)) {
    const Instruction& at = automaton_.instruction(one);
    const bool sliced = !may_commit && is_string(at) && vocabulary_.slice(at.low) != nullptr;
    (sliced ? strings : others).push_back(one);
  }
  for (const Configuration& one : strings) {
    add_string(one, *vocabulary_.slice(automaton_.instruction(one).low));
  }
  if (!others.empty()) add_below(automaton_.state_of(others), {0, nodes_.size(), 0});
  for (const auto& [token, other] : vocabulary_.trie().duplicates()) {
    if (has_mask_bit(mask_, token)) set_mask_bit(mask_, other);
  }
}

void MaskWalk::add_string(const Configuration& configuration, const StringSlice& slice) {
  const bool counted = automaton_.instruction(configuration).op == Op::kCountedString;
  const CountBounds counter = counted ? automaton_.counter(configuration) : CountBounds{};
  slice.add_inner(counter.room, mask_);
  const StateId behind = automaton_.after_string(configuration);
  if (behind == kDeadState) return;
  slice.add_exits(StringSlice::kNoSuffix, counter, mask_);
  walk_suffixes(behind, slice, counter);
}

void MaskWalk::walk_suffixes(StateId from, const StringSlice& slice, const CountBounds& counter) {
  const std::span<const VocabularyTrie::Node> nodes = slice.suffixes().nodes();
  states_[0] = from;
  for (std::size_t i = 0; i < nodes.size();) {
    const VocabularyTrie::Node& node = nodes[i];
    const StateId next = automaton_.step(states_[node.depth - 1u], node.byte);
    if (next == kDeadState) {
      i = node.skip;
      continue;
    }
    states_[node.depth] = next;
    if (node.number != VocabularyTrie::kNoNumber) slice.add_exits(node.number, counter, mask_);
    ++i;
  }
}

void MaskWalk::add_below(StateId state, const Subtree& below) {
  const std::shared_ptr<const SplitState> split = runs_.split(automaton_, vocabulary_, state);
  add_split(*split, below);
}

void MaskWalk::add_split(const SplitState& split, const Subtree& below) {
  for (const CharacterRun& run : split.runs) {
    add_inner(run, below);
    if (run.is_disjoint) {
      add_exits(run, below);
    } else {
      add_leaving(run, below);
    }
  }
  if (split.rest != kDeadState) walk(split.rest, below);
}

void MaskWalk::walk(StateId from, const Subtree& below) {
  states_[below.depth] = from;
  for (std::size_t i = below.first; i < below.end;) {
    const VocabularyTrie::Node& node = nodes_[i];
    const StateId next = automaton_.step(states_[node.depth - 1u], node.byte);
    if (next == kDeadState) {
      i = node.skip;
      continue;
    }
    bytes_[node.depth - 1u] = static_cast<char>(node.byte);
    states_[node.depth] = next;
    add_token(node);
    if (node.skip - i > nodes_.size() / kSubtrees) {
      const std::shared_ptr<const SplitState> split = runs_.split(automaton_, vocabulary_, next);
      if (!split->runs.empty()) {
        add_split(*split, {i + 1, node.skip, node.depth});
        i = node.skip;
        continue;
      }
    }
    ++i;
  }
}

void MaskWalk::add_inner(const CharacterRun& run, const Subtree& below) {
  if (below.depth > 0) {
    const std::string_view prefix = std::string_view(bytes_).substr(0, below.depth);
    return vocabulary_.characters().add_within(*run.set, below, prefix, run.room,
                                               vocabulary_.bytes(), mask_);
  }
  const std::span<const MaskWord> inner = runs_.inner(run.set, vocabulary_);
  if (run.room >= vocabulary_.trie().bytes_max()) {
    for (std::size_t i = 0; i < mask_.size(); ++i) mask_[i] |= inner[i];
    return;
  }
  std::vector<MaskWord> fit(inner.begin(), inner.end());
  vocabulary_.characters().keep_short(run.room, fit);
  for (std::size_t i = 0; i < mask_.size(); ++i) mask_[i] |= fit[i];
}

// Where a text leaves the run in one place, only subtrees that have a byte with which that is done
// are walked, and the state there is known by the characters before it.
void MaskWalk::add_exits(const CharacterRun& run, const Subtree& below) {
  const TokenCharacters& characters = vocabulary_.characters();
  std::uint64_t exits = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (run.exits.test(byte)) exits |= byte_kind(static_cast<std::uint8_t>(byte));
  }
  if (exits == 0) return;
  characters_[below.depth] = 0;
  wide_[below.depth] = kWideWhole;
  for (std::size_t i = below.first; i < below.end;) {
    const VocabularyTrie::Node& node = nodes_[i];
    const std::size_t before = node.depth - 1u;
    const std::uint8_t within = next_within(*run.set, wide_[before], node.byte);
    const bool begins = wide_[before] == kWideWhole;
    const std::uint32_t count = characters_[before] + (begins ? 1 : 0);
    const bool goes_on =
        within != kWideDead && count <= run.room && (characters.kinds_below(i) & exits) != 0;
    bytes_[before] = static_cast<char>(node.byte);
    if (goes_on) {
      characters_[node.depth] = count;
      wide_[node.depth] = within;
      ++i;
      continue;
    }
    if (begins && run.exits.test(node.byte)) {
      const StateId next = automaton_.step(run.rest(characters_[before]), node.byte);
      if (next != kDeadState) {
        add_token(node);
        walk(next, {i + 1, node.skip, node.depth});
      }
    }
    i = node.skip;
  }
}

// Where a character of the set may also leave the run, there is room for all, so that tokens of the
// set are known, and subtrees that have no others need no walk.
void MaskWalk::add_leaving(const CharacterRun& run, const Subtree& below) {
  const TokenCharacters& characters = vocabulary_.characters();
  const std::uint64_t others = ~TokenCharacters::whole_kinds(*run.set);
  states_[below.depth] = run.head;
  wide_[below.depth] = kWideWhole;
  for (std::size_t i = below.first; i < below.end;) {
    const VocabularyTrie::Node& node = nodes_[i];
    const std::size_t before = node.depth - 1u;
    if ((characters.kinds_below(i) & others) == 0) {
      i = node.skip;
      continue;
    }
    const StateId next = automaton_.step(states_[before], node.byte);
    if (next == kDeadState) {
      i = node.skip;
      continue;
    }
    bytes_[before] = static_cast<char>(node.byte);
    states_[node.depth] = next;
    add_token(node);
    wide_[node.depth] = next_within(*run.set, wide_[before], node.byte);
    if (wide_[node.depth] != kWideDead) {
      ++i;
      continue;
    }
    walk(next, {i + 1, node.skip, node.depth});
    i = node.skip;
  }
}

}  // namespace pagoda::structured
