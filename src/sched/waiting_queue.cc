#include "sched/waiting_queue.h"

#include "base/assert.h"

namespace pagoda::sched {

void WaitingQueue::push(Task& task) {
  const bool inserted = tenants_[task.tenant].insert(&task).second;
  ASSERT(inserted, "a task waits once");
  ++size_;
}

void WaitingQueue::remove(Task& task) {
  const auto queue = tenants_.find(task.tenant);
  ASSERT(queue != tenants_.end() && queue->second.erase(&task) == 1, "the task waits");
  if (queue->second.empty()) tenants_.erase(queue);
  --size_;
}

void WaitingQueue::Walk::start(const WaitingQueue& queue, const TenantTable& tenants) {
  heads_.clear();
  for (const auto& [tenant, tasks] : queue.tenants_) {
    heads_.push_back(
        {tenants[tenant].clock, tenants[tenant].limits.weight, tasks.begin(), tasks.end()});
  }
}

bool WaitingQueue::Walk::before(const Head& a, const Head& b) {
  if (a.next == a.end || b.next == b.end) return a.next != a.end;
  const Task& task_a = **a.next;
  const Task& task_b = **b.next;
  if (task_a.priority != task_b.priority) return task_a.priority < task_b.priority;
  if (a.clock != b.clock) return a.clock < b.clock;
  return task_a.arrival < task_b.arrival;
}

Task* WaitingQueue::Walk::next() {
  if (heads_.empty()) return nullptr;
  last_ = 0;
  for (std::size_t i = 1; i < heads_.size(); ++i) {
    if (before(heads_[i], heads_[last_])) last_ = i;
  }
  Head& head = heads_[last_];
  return head.next == head.end ? nullptr : *head.next++;
}

void WaitingQueue::Walk::count_rows(std::uint64_t rows) {
  heads_[last_].clock += static_cast<double>(rows) / heads_[last_].weight;
}

}  // namespace pagoda::sched
