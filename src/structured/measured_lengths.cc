#include "structured/measured_lengths.h"

#include <algorithm>
#include <span>

namespace pagoda::structured {
namespace {

// The instructions of one measured text; numbers are those of instructions less `end`.
class MeasuredText {
 public:
  MeasuredText(const Program& program, Pc end, const std::vector<MeasuredCharacter>& characters)
      : program_(program), end_(end), characters_(characters) {
    begins_.resize(program.code.size() - end + 2, 0);
    each_edge([this](std::uint32_t /*from*/, std::uint32_t to) { ++begins_[to + 2]; });
    for (std::size_t i = 2; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    edges_.resize(begins_.back());
    each_edge([this](std::uint32_t from, std::uint32_t to) { edges_[begins_[to + 1]++] = from; });
  }

  bool holds(Pc pc) const { return here_[pc - end_]; }
  // Those that come to the end without a character.
  void begin() {
    clear();
    reach(0);
    follow();
  }
  // Those that come to the end at all.
  void begin_with_any() {
    begin();
    for (bool grows = true; grows;) {
      grows = false;
      for (const MeasuredCharacter& one : characters_) {
        if (!holds(one.behind) || holds(one.pc)) continue;
        reach(one.pc - end_);
        grows = true;
      }
      follow();
    }
  }
  // Those that come with one character more to where the last ones were.
  void add_character() {
    std::vector<Pc> next;
    for (const MeasuredCharacter& one : characters_) {
      if (holds(one.behind)) next.push_back(one.pc);
    }
    clear();
    for (const Pc pc : next) reach(pc - end_);
    follow();
  }

 private:
  // Calls edge(from, to) for steps that read nothing.
  template <class Edge>
  void each_edge(const Edge& edge) const {
    for (Pc pc = end_; pc < program_.code.size(); ++pc) {
      const Instruction& at = program_.code[pc];
      if (at.op == Op::kJump && at.next >= end_) edge(pc - end_, at.next - end_);
      if (at.op != Op::kSplit) continue;
      for (const Pc target : std::span(program_.targets).subspan(at.next, at.extra)) {
        if (target >= end_) edge(pc - end_, target - end_);
      }
    }
  }

  void clear() { here_.assign(program_.code.size() - end_, false); }
  void reach(std::uint32_t at) {
    if (here_[at]) return;
    here_[at] = true;
    open_.push_back(at);
  }
  void follow() {
    while (!open_.empty()) {
      const std::uint32_t at = open_.back();
      open_.pop_back();
      for (std::uint32_t i = begins_[at]; i < begins_[at + 1]; ++i) reach(edges_[i]);
    }
  }

  const Program& program_;
  Pc end_;
  const std::vector<MeasuredCharacter>& characters_;
  std::vector<std::uint32_t> begins_;  // [to]: where its edges begin
  std::vector<std::uint32_t> edges_;   // to where they are from
  std::vector<bool> here_;
  std::vector<std::uint32_t> open_;
};

}  // namespace

void find_lengths(Program& program, Pc end, const CountBounds& bounds,
                  const std::vector<MeasuredCharacter>& characters) {
  MeasuredText text(program, end, characters);
  const bool is_bounded = bounds.room != kUnbounded;
  const std::uint32_t last = is_bounded ? bounds.room : bounds.missing;
  for (const MeasuredCharacter& one : characters) {
    program.code[one.pc].extra = program.lengths.add(last + 1);
  }
  if (is_bounded) {
    text.begin();
  } else {
    text.begin_with_any();
  }
  for (std::uint32_t length = 0;; text.add_character()) {
    for (const MeasuredCharacter& one : characters) {
      if (text.holds(one.behind)) program.lengths.set(program.code[one.pc].extra, length);
    }
    if (length++ == last) break;
  }
}

}  // namespace pagoda::structured
