// An EventFd wakes a thread that waits in poll(): any thread may notify, and notify() never waits.
#pragma once

namespace pagoda {

class EventFd {
 public:
  EventFd();
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  void notify();
  // Takes back all notifications so far.
  void clear();
  int descriptor() const { return descriptor_; }  // readable once notified

 private:
  int descriptor_;
};

}  // namespace pagoda
