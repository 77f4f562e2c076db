// Which of two ways to do the same is faster, by trying both: the one that was faster lately is
// taken, and now and then the other, since what else the machine does changes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pagoda::kv {

class AutoTuner {
 public:
  // 0 or 1: the way to take next.
  std::size_t choose() {
    const std::uint64_t turn = turns_++;
    const std::size_t faster = speeds_[1] > speeds_[0] ? 1 : 0;
    if (turn < kFirstTurns) {
      chosen_ = turn % 2;
    } else {
      chosen_ = turn % kTryEvery == 0 ? 1 - faster : faster;
    }
    return chosen_;
  }
  // Records how many units the way chosen last did in so many seconds.
  void note(double units, double seconds) {
    if (seconds <= 0) return;
    double& speed = speeds_[chosen_];
    const double seen = units / seconds;
    speed = speed == 0 ? seen : speed + (seen - speed) * kWeight;
  }

 private:
  static constexpr std::uint64_t kFirstTurns = 4;
  static constexpr std::uint64_t kTryEvery = 16;
  static constexpr double kWeight = 0.25;  // of the last

  std::array<double, 2> speeds_ = {};  // units a second, lately; 0: not known
  std::uint64_t turns_ = 0;
  std::size_t chosen_ = 0;
};

}  // namespace pagoda::kv
