// Wakes a thread that waits in poll(): any thread rings, without waiting.
#pragma once

namespace pagoda {

class WakeBell {
 public:
  WakeBell();
  ~WakeBell();
  WakeBell(const WakeBell&) = delete;
  WakeBell& operator=(const WakeBell&) = delete;

  void ring();
  // Rings so far are heard.
  void hear();
  int descriptor() const { return descriptor_; }  // readable once rung

 private:
  int descriptor_;
};

}  // namespace pagoda
