// The waiting queue orders sequences for admission: by priority (lower first), then preferred
// tenants, then the tenant with the earliest clock, then arrival. A tenant's clock moves while its
// sequences wait, and a limit holds back a whole tenant or context class. The sequences of one
// tenant and one class therefore form a line, and a walk merges the heads of the lines: each step
// of a walk costs one look at every line.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sched/sequence_task.h"

namespace pagoda::sched {

class WaitingQueue {
  struct Order {
    bool operator()(const SequenceTask* a, const SequenceTask* b) const {
      return comes_before(a, b);
    }
  };
  using Tasks = std::set<SequenceTask*, Order>;
  struct Line {
    Tasks tasks;
    std::uint64_t tokens = 0;  // known tokens of all sequences in the line
  };

 public:
  void push(SequenceTask& task);
  void remove(SequenceTask& task);
  // Records why the planner did not admit a waiting sequence.
  void note_reason(SequenceTask& task, WaitReason reason);
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const WaitCounts& by_reason() const { return by_reason_; }

  template <class Visit>  // visit(const SequenceTask&), in unspecified order
  void for_each(Visit&& visit) const {
    for (const auto& [name, line] : lines_) {
      for (const SequenceTask* const task : line.tasks) visit(*task);
    }
  }

  // Calls visit(first sequence, known tokens) for the line of every tenant and context class.
  template <class Visit>
  void for_each_line(Visit&& visit) const {
    for (const auto& [name, line] : lines_) visit(**line.tasks.begin(), line.tokens);
  }

  // Visits the sequences in order of admission. The user keeps a walk to reuse its memory; a walk
  // is valid from start() to the next change of the queue.
  class Walk {
   public:
    void start(const WaitingQueue& queue, const TenantTable& tenants);
    // Visits sequences of tenants that `is` accepts before others of equal priority.
    template <class Is>  // is(TenantId)
    void prefer(Is&& is) {
      for (Head& head : heads_) head.preferred = is(head.tenant);
    }
    // Returns nullptr when all sequences were visited.
    SequenceTask* next();
    // Advances the clock of the last sequence's tenant by `tokens`, for this walk only.
    void count_tokens(std::uint64_t tokens);
    // Ends this walk for the tenant, or for the context class, of the last sequence. Otherwise
    // small sequences could pass the last one forever.
    void close_tenant();
    void close_class();

   private:
    struct Head {
      TenantId tenant;
      std::size_t context_class;
      bool preferred = false;
      double clock;
      double weight;
      Tasks::const_iterator next;
      Tasks::const_iterator end;
    };
    static bool before(const Head& a, const Head& b);

    std::vector<Head> heads_;
    std::size_t last_ = 0;
  };

 private:
  std::uint64_t& count_of(const SequenceTask& task) {
    return by_reason_[static_cast<std::size_t>(task.waits_for)];
  }

  std::map<std::pair<TenantId, std::size_t>, Line> lines_;  // by tenant and context class
  std::size_t size_ = 0;
  WaitCounts by_reason_{};
};

}  // namespace pagoda::sched
