// Tasks that wait, in the order in which they should be admitted: priority (lower first), then the
// tenant whose clock is behind, then arrival. A tenant's clock moves while its tasks wait, so each
// tenant has an order of its own and a walk merges their heads: a step of the walk costs one look
// at every tenant that waits.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "sched/task.h"

namespace pagoda::sched {

class WaitingQueue {
  struct Order {
    bool operator()(const Task* a, const Task* b) const {
      if (a->priority != b->priority) return a->priority < b->priority;
      return a->arrival < b->arrival;
    }
  };
  using TenantQueue = std::set<Task*, Order>;

 public:
  void push(Task& task);
  void remove(Task& task);
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  template <class Visit>  // visit(const Task&), in no order that matters
  void for_each(Visit&& visit) const {
    for (const auto& [tenant, tasks] : tenants_) {
      for (const Task* const task : tasks) visit(*task);
    }
  }

  // Visits the tasks in order. Kept by its user so that its memory is taken once; valid between
  // start() and the next change of the queue.
  class Walk {
   public:
    void start(const WaitingQueue& queue, const TenantTable& tenants);
    // nullptr when all were visited.
    Task* next();
    // The last task would get `rows` rows: its tenant's clock stands later on this walk.
    void count_rows(std::uint64_t rows);

   private:
    struct Head {
      double clock;
      double weight;
      TenantQueue::const_iterator next;
      TenantQueue::const_iterator end;
    };
    static bool before(const Head& a, const Head& b);

    std::vector<Head> heads_;
    std::size_t last_ = 0;
  };

 private:
  std::map<TenantId, TenantQueue> tenants_;
  std::size_t size_ = 0;
};

}  // namespace pagoda::sched
