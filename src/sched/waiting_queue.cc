#include "sched/waiting_queue.h"

#include "base/assert.h"

namespace pagoda::sched {

void WaitingQueue::push(SequenceTask& task) {
  Line& line = lines_[{task.tenant, task.context_class}];
  const bool inserted = line.tasks.insert(&task).second;
  ASSERT(inserted, "a task waits once");
  line.tokens += task.length();
  ++size_;
  ++count_of(task);
}

void WaitingQueue::remove(SequenceTask& task) {
  const auto line = lines_.find({task.tenant, task.context_class});
  ASSERT(line != lines_.end() && line->second.tasks.erase(&task) == 1, "the task waits");
  line->second.tokens -= task.length();
  if (line->second.tasks.empty()) lines_.erase(line);
  --size_;
  --count_of(task);
}

void WaitingQueue::note_reason(SequenceTask& task, WaitReason reason) {
  --count_of(task);
  task.waits_for = reason;
  ++count_of(task);
}

void WaitingQueue::Walk::start(const WaitingQueue& queue, const TenantTable& tenants) {
  heads_.clear();
  for (const auto& [name, line] : queue.lines_) {
    const auto& [tenant, context_class] = name;
    heads_.push_back({.tenant = tenant,
                      .context_class = context_class,
                      .clock = tenants[tenant].clock,
                      .weight = tenants[tenant].limits.weight,
                      .next = line.tasks.begin(),
                      .end = line.tasks.end()});
  }
}

bool WaitingQueue::Walk::before(const Head& a, const Head& b) {
  if (a.next == a.end || b.next == b.end) return a.next != a.end;
  const SequenceTask& task_a = **a.next;
  const SequenceTask& task_b = **b.next;
  if (task_a.priority != task_b.priority) return task_a.priority < task_b.priority;
  if (a.preferred != b.preferred) return a.preferred;
  if (a.clock != b.clock) return a.clock < b.clock;
  return task_a.arrival < task_b.arrival;
}

SequenceTask* WaitingQueue::Walk::next() {
  if (heads_.empty()) return nullptr;
  last_ = 0;
  for (std::size_t i = 1; i < heads_.size(); ++i) {
    if (before(heads_[i], heads_[last_])) last_ = i;
  }
  Head& head = heads_[last_];
  return head.next == head.end ? nullptr : *head.next++;
}

void WaitingQueue::Walk::count_tokens(std::uint64_t tokens) {
  const TenantId tenant = heads_[last_].tenant;
  for (Head& head : heads_) {
    if (head.tenant == tenant) head.clock += static_cast<double>(tokens) / head.weight;
  }
}

void WaitingQueue::Walk::close_tenant() {
  const TenantId tenant = heads_[last_].tenant;
  for (Head& head : heads_) {
    if (head.tenant == tenant) head.next = head.end;
  }
}

void WaitingQueue::Walk::close_class() {
  const std::size_t context_class = heads_[last_].context_class;
  for (Head& head : heads_) {
    if (head.context_class == context_class) head.next = head.end;
  }
}

}  // namespace pagoda::sched
