// An eviction policy that is written in Python, for replays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>

#include "kv/evict/policy.h"

namespace pagoda::python {

// Calls entered(block, use), used(block, use) and left(block) of a Python object, of which the
// first two return the block's value: the block with the smallest leaves first, and a use never
// lowers it. What the object raises ends its part: the replay goes on without it, and the caller
// asks rethrow().
//
// Thread rule: the thread that made it, with the GIL held, while a cache is made of policy() and
// used. One that is made meanwhile ends before it.
class PythonPolicy {
 public:
  explicit PythonPolicy(nanobind::object asked);
  ~PythonPolicy();
  PythonPolicy(const PythonPolicy&) = delete;
  PythonPolicy& operator=(const PythonPolicy&) = delete;

  const kv::EvictionPolicy& policy() const { return policy_; }
  // Throws what the object raised, if it did.
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  friend class PythonOrder;

  nanobind::object object_;
  PythonPolicy* outer_;  // of the replay in which this one was asked for; nullptr: none
  kv::EvictionPolicy policy_;
  std::exception_ptr raised_;
};

}  // namespace pagoda::python
