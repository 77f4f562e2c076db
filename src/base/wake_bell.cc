#include "base/wake_bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"

namespace pagoda {

WakeBell::WakeBell() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  ASSERT(descriptor_ >= 0, "a process may open more than a few files");
}

WakeBell::~WakeBell() { close(descriptor_); }

// It cannot fail but for a bell rung 2^64 - 2 times unheard.
void WakeBell::ring() { (void)eventfd_write(descriptor_, 1); }

void WakeBell::hear() {
  eventfd_t rings = 0;
  (void)eventfd_read(descriptor_, &rings);
}

}  // namespace pagoda
