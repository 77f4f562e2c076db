// Tasks that wait, in the order in which they should be admitted: priority (lower first), then
// tenants that are preferred, then the tenant whose clock is behind, then arrival. A tenant's clock
// moves while its tasks wait, and a limit holds back a tenant or a length class as a whole, so the
// tasks of one tenant and one class stand in a line of their own and a walk merges the heads: a
// step of the walk costs one look at every line.
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
    std::uint64_t tokens = 0;  // known of all of them
  };

 public:
  void push(SequenceTask& task);
  void remove(SequenceTask& task);
  // A waiting task was looked at and left.
  void note_reason(SequenceTask& task, WaitReason reason);
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const WaitCounts& by_reason() const { return by_reason_; }

  template <class Visit>  // visit(const SequenceTask&), in no order that matters
  void for_each(Visit&& visit) const {
    for (const auto& [name, line] : lines_) {
      for (const SequenceTask* const task : line.tasks) visit(*task);
    }
  }

  template <class Visit>  // visit(const SequenceTask& first, tokens), for every tenant and length
                          // class
                          void for_each_line(Visit&& visit) const {
    for (const auto& [name, line] : lines_) visit(**line.tasks.begin(), line.tokens);
  }

  // Visits the tasks in order. Kept by its user so that its memory is taken once; valid between
  // start() and the next change of the queue.
  class Walk {
   public:
    void start(const WaitingQueue& queue, const TenantTable& tenants);
    // Of equal priority, tasks of such tenants come before those of others.
    template <class Is>  // is(TenantId)
    void prefer(Is&& is) {
      for (Head& head : heads_) head.preferred = is(head.tenant);
    }
    // nullptr when all were visited.
    SequenceTask* next();
    // The last task would get `tokens` tokens: its tenant's clock stands later on this walk.
    void count_tokens(std::uint64_t tokens);
    // The last task has to wait for its tenant, or for its length class: so do all behind it, on
    // this walk. Else small ones could pass it for ever.
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

  std::map<std::pair<TenantId, std::size_t>, Line> lines_;  // by tenant and length class
  std::size_t size_ = 0;
  WaitCounts by_reason_{};
};

}  // namespace pagoda::sched
