#include "terminal/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/byte_size.h"

namespace pagoda::terminal {
namespace {

constexpr double kQuietSeconds = 0.5;
constexpr double kLineSeconds = 5;
constexpr std::uint64_t kWidth = 30;

}  // namespace

ProgressBar::ProgressBar(std::string label, std::string unit, const Clock& clock)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      clock_(clock),
      start_ns_(clock.now_ns()),
      terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressBar::show(std::uint64_t done, std::uint64_t total) {
  if (total == 0) return;
  done_ = done;
  total_ = total;
  const std::int64_t now_ns = clock_.now_ns();
  if (seconds_between(start_ns_, now_ns) < (terminal_ ? kQuietSeconds : kLineSeconds)) return;
  if (!terminal_) {
    start_ns_ = now_ns;  // of the next line's pause
    print_line();
    return;
  }
  const std::uint64_t filled = kWidth * done / total;
  fmt::print(stderr, "\r{} [{:=<{}}{:<{}}] {} / {} {}", label_, "", filled, "", kWidth - filled,
             format_grouped(done), format_grouped(total), unit_);
  std::fflush(stderr);
  shown_ = true;
}

// One that says what the one before said is left out.
void ProgressBar::print_line() {
  if (shown_ && done_ == printed_) return;
  fmt::print(stderr, "{}: {} / {} {}\n", label_, format_grouped(done_), format_grouped(total_),
             unit_);
  std::fflush(stderr);
  printed_ = done_;
  shown_ = true;
}

void ProgressBar::clear() {
  if (shown_ && terminal_) fmt::print(stderr, "\r\033[K");
  if (shown_ && !terminal_) print_line();
  shown_ = false;
}

}  // namespace pagoda::terminal
