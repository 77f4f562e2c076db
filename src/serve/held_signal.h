// A signal that waits until somebody hears it.
#pragma once

#include <csignal>

namespace pagoda::serve {

// From construction to release() `signal` ends nothing and calls no handler: the kernel keeps it,
// once, and delivers it then. It holds for this thread and those it starts in between, which keep
// it blocked for good.
class HeldSignal {
 public:
  explicit HeldSignal(int signal) {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignal() { release(); }
  HeldSignal(const HeldSignal&) = delete;
  HeldSignal& operator=(const HeldSignal&) = delete;

  void release() {
    if (is_held_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    is_held_ = false;
  }

 private:
  sigset_t before_;
  bool is_held_ = true;
};

}  // namespace pagoda::serve
