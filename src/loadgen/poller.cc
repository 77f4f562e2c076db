#include "loadgen/poller.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace pagoda::loadgen {
namespace {

constexpr int kEventsMax = 256;  // between two looks at what is due
constexpr std::uint32_t kTimerSlot = UINT32_MAX;

}  // namespace

Poller::Poller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  ASSERT(epoll_ >= 0 && timer_ >= 0, "the system gives an epoll and a timer");
  epoll_event event = {.events = EPOLLIN | EPOLLET, .data = {.u32 = kTimerSlot}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event);
}

Poller::~Poller() {
  close(timer_);
  close(epoll_);
}

void Poller::add(int descriptor, std::uint32_t slot) {
  epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u32 = slot}};
  const int added = epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
  ASSERT(added == 0, "an open socket can be watched");
}

void Poller::set_timer(std::int64_t nanoseconds) const {
  constexpr std::int64_t kSecond = 1'000'000'000;
  itimerspec spec = {};
  spec.it_value.tv_sec = nanoseconds / kSecond;
  spec.it_value.tv_nsec = nanoseconds % kSecond;
  timerfd_settime(timer_, 0, &spec, nullptr);
}

std::span<const std::uint32_t> Poller::wait(std::int64_t nanoseconds) {
  ready_.clear();
  if (nanoseconds > 0) set_timer(nanoseconds);
  std::array<epoll_event, kEventsMax> events;
  const int count = epoll_wait(epoll_, events.data(), kEventsMax, nanoseconds > 0 ? -1 : 0);
  for (int i = 0; i < count; ++i) {
    const std::uint32_t slot = events[static_cast<std::size_t>(i)].data.u32;
    if (slot != kTimerSlot) ready_.push_back(slot);
  }
  return ready_;
}

}  // namespace pagoda::loadgen
