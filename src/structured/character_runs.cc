#include "structured/character_runs.h"

#include <algorithm>
#include <utility>

#include "structured/wide_characters.h"

namespace pagoda::structured {
namespace {

// A set is worth a run where its characters begin so many of the trie's nodes.
constexpr std::size_t kNodesPerSet = 32;

std::size_t nodes_begun_by(const VocabularyTrie& trie, const CharacterSet& set) {
  const std::span<const VocabularyTrie::Node> nodes = trie.nodes();
  std::size_t count = 0;
  for (std::size_t i = 0; i < nodes.size(); i = nodes[i].skip) {
    const bool begins = nodes[i].byte < 0x80 ? set.ascii.test(nodes[i].byte) : set.has_wide;
    if (begins) count += nodes[i].skip - i;
  }
  return count;
}

bool is_disjoint_from(const ByteSet& exits, const CharacterSet& set) {
  if ((exits & set.ascii).any()) return false;
  for (unsigned byte = 0x80; byte < 256 && set.has_wide; ++byte) {
    const bool begins = wide_characters(set.has_separators)[kWideWhole][byte] != kWideDead;
    if (begins && exits.test(byte)) return false;
  }
  return true;
}

template <class Value>
void keep(std::vector<Value>& kept, std::size_t& next, std::size_t most, Value value) {
  if (kept.size() < most) {
    kept.push_back(std::move(value));
    next = kept.size() % most;
    return;
  }
  kept[next] = std::move(value);
  next = (next + 1) % most;
}

}  // namespace

bool CharacterRuns::reads_characters(const Instruction& at) {
  return at.op == Op::kSet || (at.op == Op::kWide && at.low == kWideWhole);
}

CharacterRuns::SetKey CharacterRuns::key_of(const Instruction& at) {
  const bool is_wide = at.op == Op::kWide;
  return {at.extra, is_wide, is_wide && at.high != 0};
}

void CharacterRuns::clear() { *this = {}; }

const CharacterRuns::KnownSet& CharacterRuns::known(const SetKey& key, const Automaton& automaton,
                                                    const MaskVocabulary& vocabulary) {
  const auto found =
      std::find_if(sets_.begin(), sets_.end(), [&](const KnownSet& one) { return one.key == key; });
  if (found != sets_.end()) return *found;
  const CharacterSet characters = {automaton.set(key.number), key.has_wide, key.has_separators};
  KnownSet made = {.key = key, .set = {}};
  bool has_example = false;
  for (std::uint32_t byte = 0; byte < 0x80 && !has_example; ++byte) {
    if (!characters.ascii.test(byte)) continue;
    made.example = static_cast<std::uint8_t>(byte);
    has_example = true;
  }
  const std::size_t nodes = vocabulary.trie().nodes().size();
  if (has_example && nodes_begun_by(vocabulary.trie(), characters) > nodes / kNodesPerSet) {
    made.set = std::make_shared<const CharacterSet>(characters);
  }
  keep(sets_, next_set_, kSetsKept, std::move(made));
  return sets_[(next_set_ + sets_.size() - 1) % sets_.size()];
}

// False where a run does not help: there is room for one character alone, or a text may leave it in
// many places and there is no telling by its characters whether it fits.
bool CharacterRuns::find_rests(Automaton& automaton, const KnownSet& known,
                               std::uint32_t characters_max, CharacterRun& run) {
  StateId head = run.head;
  run.rests = {kDeadState};
  while (true) {
    const StateId behind = automaton.step(head, known.example);
    if (behind == kDeadState) return false;
    std::vector<Configuration> heads;
    std::vector<Configuration> others;
    const auto all = automaton.configurations(behind);
    for (const Configuration& one : all) {
      const Instruction& at = automaton.instruction(one);
      const bool goes_on = reads_characters(at) && key_of(at) == known.key;
      (goes_on ? heads : others).push_back(one);
      if (!goes_on) run.exits |= automaton.bytes_of(one);
    }
    run.rests.push_back(automaton.state_of(others));
    if (heads.empty()) {
      run.room = static_cast<std::uint32_t>(run.rests.size()) - 1;
      break;
    }
    const StateId next = automaton.state_of(heads);
    if (next == head || run.rests.size() > characters_max) break;
    head = next;
  }
  run.is_disjoint = is_disjoint_from(run.exits, *run.set);
  return run.room > 1 && (run.is_disjoint || run.room == kUnbounded);
}

std::shared_ptr<const SplitState> CharacterRuns::split(Automaton& automaton,
                                                       const MaskVocabulary& vocabulary,
                                                       StateId state) {
  for (const auto& one : splits_) {
    if (one->state == state) return one;
  }
  const auto made = std::make_shared<SplitState>();
  made->state = state;
  made->rest = state;
  std::vector<Configuration> all(automaton.configurations(state).begin(),
                                 automaton.configurations(state).end());
  std::vector<Configuration> others = all;
  std::vector<SetKey> tried;
  for (const Configuration& first : all) {
    const Instruction& at = automaton.instruction(first);
    if (!reads_characters(at)) continue;
    const SetKey key = key_of(at);
    if (std::find(tried.begin(), tried.end(), key) != tried.end()) continue;
    tried.push_back(key);
    const KnownSet& known_set = known(key, automaton, vocabulary);
    if (!known_set.set) continue;
    std::vector<Configuration> heads;
    const auto is_head = [&](const Configuration& one) {
      const Instruction& other = automaton.instruction(one);
      return reads_characters(other) && key_of(other) == key;
    };
    std::copy_if(all.begin(), all.end(), std::back_inserter(heads), is_head);
    CharacterRun run;
    run.head = automaton.state_of(heads);
    run.set = known_set.set;
    const auto characters_max = static_cast<std::uint32_t>(vocabulary.trie().bytes_max());
    if (!find_rests(automaton, known_set, characters_max, run)) continue;
    std::erase_if(others, is_head);
    made->runs.push_back(std::move(run));
  }
  if (!made->runs.empty()) made->rest = automaton.state_of(others);
  // Nodes that commit are judged together with all that is beside them.
  if (automaton.has_commits() && !made->runs.empty()) {
    CharacterRun& run = made->runs.front();
    ByteSet beside;
    for (const Configuration& one : others) beside |= automaton.bytes_of(one);
    const bool is_alone =
        made->runs.size() == 1 && run.is_disjoint && is_disjoint_from(beside, *run.set);
    if (!is_alone) {
      made->runs.clear();
      made->rest = state;
    }
  }
  keep(splits_, next_split_, kSplitsKept, std::shared_ptr<const SplitState>(made));
  return made;
}

std::span<const MaskWord> CharacterRuns::inner(const std::shared_ptr<const CharacterSet>& set,
                                               const MaskVocabulary& vocabulary) {
  for (const KnownMask& known : masks_) {
    if (known.set == set) return known.mask;
  }
  KnownMask made = {set, std::vector<MaskWord>(vocabulary.words(), 0)};
  const Subtree all = {0, vocabulary.trie().nodes().size(), 0};
  vocabulary.characters().add_within(*set, all, {}, kUnbounded, vocabulary.bytes(), made.mask);
  keep(masks_, next_mask_, kMasksKept, std::move(made));
  return masks_[(next_mask_ + masks_.size() - 1) % masks_.size()].mask;
}

}  // namespace pagoda::structured
