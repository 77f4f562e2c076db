#include "base/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"

namespace pagoda {

EventFd::EventFd() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  ASSERT(descriptor_ >= 0, "a process may open more than a few files");
}

EventFd::~EventFd() { close(descriptor_); }

// The write fails only where 2^64 - 2 notifications are pending.
void EventFd::notify() { (void)eventfd_write(descriptor_, 1); }

void EventFd::clear() {
  eventfd_t count = 0;
  (void)eventfd_read(descriptor_, &count);
}

}  // namespace pagoda
