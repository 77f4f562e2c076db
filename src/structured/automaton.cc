#include "structured/automaton.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "structured/string_automaton.h"
#include "structured/wide_characters.h"

namespace pagoda::structured {
namespace {

std::uint64_t hash_of_configuration(const Configuration& configuration) {
  return mix_hash(0, (std::uint64_t{configuration.frame} << 32) | configuration.pc);
}

std::uint64_t hash_of_configurations(std::span<const Configuration> all, bool accepts) {
  std::uint64_t hash = accepts ? 1 : 2;
  for (const Configuration& one : all) {
    hash = mix_hash(hash, (std::uint64_t{one.frame} << 32) | one.pc);
  }
  return hash;
}

std::uint32_t less_one(std::uint32_t count) {
  return count == kUnbounded || count == 0 ? count : count - 1;
}

}  // namespace

Automaton::Automaton(std::shared_ptr<const Program> program, std::uint32_t token_bytes_max)
    : program_(std::move(program)), token_bytes_max_(token_bytes_max) {
  clear();
}

void Automaton::clear() {
  // The memory is given back: bytes() is what decides when this is done.
  frames_ = std::vector<Frame>(1, Frame{.canonical = 0});
  frame_index_.clear();
  states_ = std::vector<State>();
  state_index_.clear();
  configurations_ = std::vector<Configuration>();
  rows_ = decltype(rows_)();
  intern_state({}, false);
}

StateId Automaton::start() {
  visit(program_->entry, 0);
  return take_closure();
}

std::uint64_t Automaton::hash_of_frame(std::uint32_t frame) const {
  const Frame& at = frames_[frame];
  std::uint64_t hash = mix_hash(at.returns_to, at.parent);
  return mix_hash(hash, (std::uint64_t{at.missing} << 32) | at.room);
}

std::uint64_t Automaton::hash_of_state(StateId state) const {
  return hash_of_configurations(configurations(state), states_[state].accepts);
}

std::uint32_t Automaton::push(std::uint32_t returns_to, CountBounds bounds, std::uint32_t parent) {
  const auto next = static_cast<std::uint32_t>(frames_.size());
  frames_.push_back({.returns_to = returns_to,
                     .missing = bounds.missing,
                     .room = bounds.room,
                     .parent = parent,
                     .depth = frames_[parent].depth + 1});
  const std::uint32_t found = frame_index_.find_or_add(
      hash_of_frame(next), next,
      [&](std::uint32_t other) {
        const Frame& a = frames_[other];
        return a.returns_to == returns_to && a.missing == bounds.missing && a.room == bounds.room &&
               a.parent == parent;
      },
      [this](std::uint32_t other) { return hash_of_frame(other); });
  if (found != next) frames_.pop_back();
  return found;
}

std::uint32_t Automaton::counted(std::uint32_t frame) {
  const Frame at = frames_[frame];
  return push(kCounterFrame, {less_one(at.missing), less_one(at.room)}, at.parent);
}

void Automaton::visit(Pc pc, std::uint32_t frame) {
  if (exhausted_) return;
  // A configuration that would pass the stack's limit before it can end is not begun.
  if (std::uint64_t{frames_[frame].depth} + program_->depths[pc] > kStackDepthMax) return;
  const Configuration one = {pc, frame};
  const auto next = static_cast<std::uint32_t>(seen_.size());
  const std::uint32_t found = seen_index_.find_or_add(
      hash_of_configuration(one), next, [&](std::uint32_t other) { return seen_[other] == one; },
      [this](std::uint32_t other) { return hash_of_configuration(seen_[other]); });
  if (found != next) return;
  seen_.push_back(one);
  open_.push_back(one);
  if (++work_ > kWorkMax || seen_.size() > 4 * kConfigurationsMax) exhausted_ = true;
}

void Automaton::follow(Pc pc, std::uint32_t frame) {
  const Instruction& at = program_->code[pc];
  switch (at.op) {
    case Op::kFail:
      return;
    case Op::kJump:
      return visit(at.next, frame);
    case Op::kCommit:
      if (is_committed_) return visit(at.next, frame);
      committed_.push_back({at.next, frame});
      return;
    case Op::kSplit:
      for (std::uint32_t i = 0; i < at.extra; ++i) visit(program_->targets[at.next + i], frame);
      return;
    case Op::kCall:
      return visit(at.next, push(at.extra, {}, frame));
    case Op::kReturn:
      if (frame == 0) {
        closure_accepts_ = true;
        return;
      }
      return visit(frames_[frame].returns_to, frames_[frame].parent);
    case Op::kCount:
      return visit(at.next, push(kCounterFrame, program_->bounds[at.extra], frame));
    case Op::kCountLoop:
      if (frames_[frame].room > 0) visit(at.next, frame);
      if (frames_[frame].missing == 0) visit(at.extra, frames_[frame].parent);
      return;
    case Op::kCountStep:
      return visit(at.next, counted(frame));
    case Op::kMeasure:
      return visit(at.next, push(kMeasureFrame, program_->bounds[at.extra], frame));
    case Op::kCharacter: {
      const Frame& measure = frames_[frame];
      const CountBounds left = {less_one(measure.missing), less_one(measure.room)};
      const bool fits =
          measure.room > 0 && program_->lengths.has_any(at.extra, left.missing, left.room);
      if (fits) visit(at.next, push(kMeasureFrame, left, measure.parent));
      return;
    }
    case Op::kMeasured:
      if (frames_[frame].missing == 0) visit(at.next, frames_[frame].parent);
      return;
    default:
      reading_.push_back({pc, frame});
  }
}

void Automaton::follow_open() {
  while (!open_.empty()) {
    const Configuration next = open_.back();
    open_.pop_back();
    follow(next.pc, next.frame);
  }
}

void Automaton::keep_committed() {
  seen_.clear();
  seen_index_.clear();
  reading_.clear();
  closure_accepts_ = false;
  is_committed_ = true;
  for (const Configuration& one : committed_) visit(one.pc, one.frame);
  follow_open();
  is_committed_ = false;
  committed_.clear();
}

bool Automaton::may_commit(StateId state) const {
  if (program_->before_commit.empty()) return false;
  const auto all = configurations(state);
  return std::any_of(all.begin(), all.end(),
                     [this](const Configuration& one) { return program_->before_commit[one.pc]; });
}

StateId Automaton::take_closure() {
  follow_open();
  if (!committed_.empty()) keep_committed();
  if (reading_.size() > kConfigurationsMax) exhausted_ = true;
  for (std::uint32_t level = 0; level < kJoinedLevels && !exhausted_; ++level) {
    join_counters(level);
  }
  std::sort(reading_.begin(), reading_.end());
  const StateId state = exhausted_ ? kDeadState : intern_state(reading_, closure_accepts_);
  seen_.clear();
  seen_index_.clear();
  reading_.clear();
  closure_accepts_ = false;
  return state;
}

std::uint32_t Automaton::frame_below(std::uint32_t frame, std::uint32_t level) const {
  for (; level > 0; --level) frame = frames_[frame].parent;
  return frame;
}

std::uint32_t Automaton::with_bounds(std::uint32_t frame, std::uint32_t level, CountBounds bounds) {
  const Frame at = frames_[frame];
  if (level == 0) return push(kCounterFrame, bounds, at.parent);
  return push(at.returns_to, {at.missing, at.room}, with_bounds(at.parent, level - 1, bounds));
}

// A counter stands for every number of repetitions from `missing` to `room`. Two that overlap or
// touch stand for those from the least to the most, and go on doing so when both are counted down.
void Automaton::join_counters(std::uint32_t level) {
  counted_.clear();
  for (const Configuration& one : reading_) {
    const std::uint32_t frame = frame_below(one.frame, level);
    if (frame == 0 || frames_[frame].returns_to != kCounterFrame) continue;
    counted_.push_back({one.pc, 0, {frames_[frame].missing, frames_[frame].room}, one.frame});
  }
  if (counted_.size() < 2) return;
  std::erase_if(reading_, [&](const Configuration& one) {
    const std::uint32_t frame = frame_below(one.frame, level);
    return frame != 0 && frames_[frame].returns_to == kCounterFrame;
  });
  for (Counted& one : counted_) one.rest = with_bounds(one.frame, level, {});
  std::sort(counted_.begin(), counted_.end(), [](const Counted& a, const Counted& b) {
    return std::tie(a.pc, a.rest, a.bounds.missing) < std::tie(b.pc, b.rest, b.bounds.missing);
  });
  for (std::size_t i = 0; i < counted_.size();) {
    Counted joined = counted_[i++];
    const CountBounds before = joined.bounds;
    for (; i < counted_.size(); ++i) {
      const Counted& next = counted_[i];
      const bool is_near = next.pc == joined.pc && next.rest == joined.rest &&
                           next.bounds.missing <= std::uint64_t{joined.bounds.room} + 1;
      if (!is_near) break;
      joined.bounds.room = std::max(joined.bounds.room, next.bounds.room);
    }
    const bool is_same = joined.bounds.room == before.room;
    reading_.push_back(
        {joined.pc, is_same ? joined.frame : with_bounds(joined.frame, level, joined.bounds)});
  }
}

StateId Automaton::intern_state(std::span<const Configuration> sorted, bool accepts) {
  const auto next = static_cast<StateId>(states_.size());
  const std::uint32_t found = state_index_.find_or_add(
      hash_of_configurations(sorted, accepts), next,
      [&](StateId other) {
        const auto known = configurations(other);
        return states_[other].accepts == accepts &&
               std::equal(known.begin(), known.end(), sorted.begin(), sorted.end());
      },
      [this](StateId other) { return hash_of_state(other); });
  if (found != next) return found;
  if (states_.size() >= kStatesMax || bytes() > kAutomatonBytesMax) {
    exhausted_ = true;
    return kDeadState;
  }
  states_.push_back({.first = static_cast<std::uint32_t>(configurations_.size()),
                     .count = static_cast<std::uint32_t>(sorted.size()),
                     .accepts = accepts});
  configurations_.insert(configurations_.end(), sorted.begin(), sorted.end());
  return next;
}

std::size_t Automaton::bytes() const {
  return frames_.capacity() * sizeof(Frame) + states_.capacity() * sizeof(State) +
         configurations_.capacity() * sizeof(Configuration) + rows_.capacity() * sizeof(rows_[0]) +
         frame_index_.bytes() + state_index_.bytes();
}

void Automaton::keep_step(StateId state, std::uint8_t byte, StateId next) {
  State& at = states_[state];
  if (at.row == kNoRow && at.edges < kEdgesMax) {
    at.edge_bytes[at.edges] = byte;
    at.edge_targets[at.edges++] = static_cast<std::uint16_t>(next);
    return;
  }
  if (at.row == kNoRow) {
    at.row = static_cast<std::uint32_t>(rows_.size());
    rows_.emplace_back().fill(kUnknown);
    for (std::uint32_t i = 0; i < at.edges; ++i) {
      rows_.back()[at.edge_bytes[i]] = at.edge_targets[i];
    }
  }
  rows_[at.row][byte] = static_cast<std::uint16_t>(next);
}

StateId Automaton::compute_step(StateId state, std::uint8_t byte) {
  if (state == kDeadState) return kDeadState;
  const std::uint32_t first = states_[state].first;
  for (std::uint32_t i = 0; i < states_[state].count; ++i) {
    step_configuration(configurations_[first + i], byte);
  }
  // Trying is cheaper than visiting.
  constexpr std::uint64_t kTriedPerVisit = 8;
  work_ += states_[state].count / kTriedPerVisit;
  if (work_ > kWorkMax) exhausted_ = true;
  const StateId next = open_.empty() ? kDeadState : take_closure();
  // A byte that leads nowhere is quickly tried again where there is little to try.
  const bool is_worth_it = next != kDeadState || states_[state].count > kEdgesMax;
  if (!exhausted_ && is_worth_it) keep_step(state, byte, next);
  return next;
}

void Automaton::step_configuration(const Configuration& from, std::uint8_t byte) {
  const Instruction& at = program_->code[from.pc];
  switch (at.op) {
    case Op::kRange:
      if (at.low <= byte && byte <= at.high) visit(at.next, from.frame);
      return;
    case Op::kSet:
      if (program_->sets[at.extra].test(byte)) visit(at.next, from.frame);
      return;
    case Op::kWide: {
      if (byte < 0x80) {
        const bool takes = at.low == kWideWhole && program_->sets[at.extra].test(byte);
        if (takes) visit(at.next, from.frame);
        return;
      }
      const std::uint8_t next = wide_characters(at.high != 0)[at.low][byte];
      if (next == kWideDead) return;
      return next == kWideWhole ? visit(at.next, from.frame)
                                : visit(from.pc - at.low + next, from.frame);
    }
    case Op::kString: {
      const std::uint8_t next = string_automaton().next[at.low][byte];
      if (next == kClosed) visit(at.next, from.frame);
      if (next < kStringStates) visit(from.pc - at.low + next, from.frame);
      return;
    }
    case Op::kCountedString:
      return step_counted_string(from, at, byte);
    case Op::kOtherString: {
      if (program_->sets[at.extra].test(byte)) return;
      const std::uint8_t next = string_automaton().next[at.low][byte];
      if (next == kClosed) visit(program_->code[at.next].next, from.frame);
      if (next < kStringStates) visit(at.next + next, from.frame);
      return;
    }
    default:
      return;
  }
}

void Automaton::step_counted_string(const Configuration& from, const Instruction& at,
                                    std::uint8_t byte) {
  const std::uint8_t next = string_automaton().next[at.low][byte];
  if (next == kClosed) {
    if (frames_[from.frame].missing == 0) visit(at.next, frames_[from.frame].parent);
    return;
  }
  if (next >= kStringStates) return;
  if (!begins_character(at.low, byte)) return visit(from.pc - at.low + next, from.frame);
  if (frames_[from.frame].room > 0) visit(from.pc - at.low + next, counted(from.frame));
}

std::uint32_t Automaton::canonical_frame(std::uint32_t frame) {
  if (frames_[frame].canonical != kNotComputed) return frames_[frame].canonical;
  const Frame at = frames_[frame];
  const std::uint32_t parent = canonical_frame(at.parent);
  const auto far = [this](std::uint32_t count) {
    return count > token_bytes_max_ ? kUnbounded : count;
  };
  const bool counts = at.returns_to == kCounterFrame;
  const CountBounds bounds = {counts ? far(at.missing) : at.missing,
                              counts ? far(at.room) : at.room};
  const std::uint32_t found = push(at.returns_to, bounds, parent);
  frames_[found].canonical = found;
  frames_[frame].canonical = found;
  return found;
}

StateId Automaton::canonical(StateId state) {
  if (states_[state].canonical != kNotComputed) return states_[state].canonical;
  std::vector<Configuration> mapped(configurations(state).begin(), configurations(state).end());
  for (Configuration& one : mapped) one.frame = canonical_frame(one.frame);
  std::sort(mapped.begin(), mapped.end());
  mapped.erase(std::unique(mapped.begin(), mapped.end()), mapped.end());
  const StateId found = intern_state(mapped, states_[state].accepts);
  states_[state].canonical = found;
  return found;
}

ByteSet Automaton::bytes_of(const Configuration& configuration) const {
  const Instruction& at = instruction(configuration);
  ByteSet bytes;
  const auto add_string = [&bytes](std::uint8_t state) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (string_automaton().next[state][byte] != kDead) bytes.set(byte);
    }
  };
  if (at.op == Op::kRange) {
    for (unsigned byte = at.low; byte <= at.high; ++byte) bytes.set(byte);
  } else if (at.op == Op::kSet) {
    bytes = program_->sets[at.extra];
  } else if (at.op == Op::kWide) {
    if (at.low == kWideWhole) bytes = program_->sets[at.extra];
    for (unsigned byte = 0x80; byte < 256; ++byte) {
      if (wide_characters(at.high != 0)[at.low][byte] != kWideDead) bytes.set(byte);
    }
  } else {
    add_string(at.low);
    if (at.op == Op::kOtherString) bytes &= ~program_->sets[at.extra];
  }
  return bytes;
}

StateId Automaton::state_of(std::span<const Configuration> configurations) {
  return intern_state(configurations, false);
}

StateId Automaton::after_string(const Configuration& configuration) {
  const Instruction& at = program_->code[configuration.pc];
  const bool is_counted = at.op == Op::kCountedString;
  visit(at.next, is_counted ? frames_[configuration.frame].parent : configuration.frame);
  return take_closure();
}

std::uint32_t Automaton::copy_frame(std::span<const Frame> from, std::uint32_t frame) {
  if (frame == 0) return 0;
  const Frame& at = from[frame];
  return push(at.returns_to, {at.missing, at.room}, copy_frame(from, at.parent));
}

StateId Automaton::forget(StateId kept) {
  const bool accepts = states_[kept].accepts;
  std::vector<Configuration> all(configurations(kept).begin(), configurations(kept).end());
  const std::vector<Frame> old = std::move(frames_);
  clear();
  for (Configuration& one : all) one.frame = copy_frame(old, one.frame);
  std::sort(all.begin(), all.end());
  return intern_state(all, accepts);
}

}  // namespace pagoda::structured
