#include "structured/completion_depth.h"

#include <algorithm>
#include <utility>

namespace pagoda::structured {
namespace {

// Finds the depths in ascending order, as shortest paths are found: an instruction's depth is never
// below that of an instruction it depends on, so that each is settled once.
class CompletionDepths {
 public:
  explicit CompletionDepths(const Program& program)
      : program_(program),
        depths_(program.code.size(), kEndlessDepth),
        missing_(program.code.size(), 1),
        begins_(program.code.size() + 2, 0) {
    each_edge([this](Pc from, Pc /*to*/) { ++begins_[from + 2]; });
    for (std::size_t i = 2; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    edges_.resize(begins_.back());
    each_edge([this](Pc from, Pc to) { edges_[begins_[from + 1]++] = to; });
  }

  std::vector<std::uint32_t> find() && {
    open_.resize(1);
    for (Pc pc = 0; pc < program_.code.size(); ++pc) {
      const Op op = program_.code[pc].op;
      if (op == Op::kCall || needs_body(pc)) missing_[pc] = 2;
      if (is_end(op)) settle(pc, 0);
    }
    for (std::size_t depth = 0; depth < open_.size(); ++depth) {
      while (!open_[depth].empty()) {
        const Pc pc = open_[depth].back();
        open_[depth].pop_back();
        for (std::uint32_t i = begins_[pc]; i < begins_[pc + 1]; ++i) reach(edges_[i], pc);
      }
    }
    return std::move(depths_);
  }

 private:
  // A rule ends at its return, a repetition where it counts: whoever entered it answers for the
  // rest.
  static bool is_end(Op op) {
    return op == Op::kReturn || op == Op::kCountStep || op == Op::kCountLoop ||
           op == Op::kCountedString;
  }

  bool needs_body(Pc pc) const {
    const Instruction& at = program_.code[pc];
    return at.op == Op::kCount && program_.code[at.next].op == Op::kCountLoop &&
           program_.bounds[at.extra].missing > 0;
  }

  Pc behind_count(const Instruction& count) const {
    const Instruction& counted = program_.code[count.next];
    return counted.op == Op::kCountLoop ? counted.extra : counted.next;
  }

  // Calls edge(from, to) for each instruction `from` that the depth of `to` depends on.
  template <class Edge>
  void each_edge(const Edge& edge) const {
    for (Pc pc = 0; pc < program_.code.size(); ++pc) {
      const Instruction& at = program_.code[pc];
      if (at.op == Op::kFail || is_end(at.op)) continue;
      if (at.op == Op::kSplit) {
        for (std::uint32_t i = 0; i < at.extra; ++i) edge(program_.targets[at.next + i], pc);
      } else if (at.op == Op::kCall) {
        edge(at.next, pc);
        edge(at.extra, pc);
      } else if (at.op == Op::kCount) {
        edge(behind_count(at), pc);
        if (needs_body(pc)) edge(program_.code[at.next].next, pc);
      } else {
        edge(at.next, pc);
      }
    }
  }

  // One of those that `pc` depends on is settled, none of which is deeper than `from`.
  void reach(Pc pc, Pc from) {
    if (--missing_[pc] != 0) return;
    const Instruction& at = program_.code[pc];
    std::uint32_t depth = depths_[from];
    if (at.op == Op::kCall) depth = std::max(depths_[at.next] + 1, depths_[at.extra]);
    // The measure's frame counts for the instructions behind its text, too, where it is gone.
    if (at.op == Op::kMeasure) ++depth;
    if (at.op == Op::kCount) {
      const std::uint32_t body = needs_body(pc) ? depths_[program_.code[at.next].next] : 0;
      depth = std::max(body + 1, depths_[behind_count(at)]);
    }
    settle(pc, depth);
  }

  void settle(Pc pc, std::uint32_t depth) {
    if (depths_[pc] != kEndlessDepth) return;
    depths_[pc] = depth;
    if (open_.size() <= depth) open_.resize(depth + 1);
    open_[depth].push_back(pc);
  }

  const Program& program_;
  std::vector<std::uint32_t> depths_;
  std::vector<std::uint32_t> missing_;  // how many that a depth depends on are not settled
  std::vector<std::uint32_t> begins_;   // [pc]: where its edges begin
  std::vector<Pc> edges_;               // to those that depend on it
  std::vector<std::vector<Pc>> open_;   // [depth]: settled, but not followed
};

}  // namespace

std::vector<std::uint32_t> completion_depths(const Program& program) {
  return CompletionDepths(program).find();
}

}  // namespace pagoda::structured
