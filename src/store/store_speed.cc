#include "store/store_speed.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace pagoda::store {
namespace {

// ReportSignal outlives the trial: the store keeps it for on_report().
class ReportSignal {
 public:
  void notify() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    changed_.notify_one();
  }
  void wait(std::int64_t ns) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

double cpu_s() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class Trial {
 public:
  Trial(kv::PageStore& store, const SpeedTrial& options)
      : store_(store),
        options_(options),
        seed_(fresh_seed()),
        signal_(std::make_shared<ReportSignal>()) {
    store_.on_report([signal = signal_] { signal->notify(); });
    source_.resize(options.page_bytes);
    for (std::size_t i = 0; i < source_.size(); ++i) {
      source_[i] = static_cast<std::byte>(random_bits(seed_, 0, i / 8) >> (i % 8 * 8));
    }
  }

  Result<StoreSpeed> run() {
    StoreSpeed speed = {.pages = options_.pages, .page_bytes = options_.page_bytes};
    const std::int64_t begin_ns = clock_.now_ns();
    const double begin_cpu_s = cpu_s();
    end_ns_ = begin_ns + options_.timeout_ns;
    RETURN_IF_ERROR(write_all());
    RETURN_IF_ERROR(store_.flush(end_ns_ - clock_.now_ns()));
    const std::int64_t written_ns = clock_.now_ns();
    const double written_cpu_s = cpu_s();
    RETURN_IF_ERROR(read_all());
    speed.write_s = seconds_between(begin_ns, written_ns);
    speed.read_s = seconds_between(written_ns, clock_.now_ns());
    speed.write_cpu_s = written_cpu_s - begin_cpu_s;
    speed.read_cpu_s = cpu_s() - written_cpu_s;
    speed.pages_failed = failed_;
    return speed;
  }

 private:
  kv::PageLabel label(std::size_t page) const {
    kv::PageLabel label;
    label.key.space.digest.fill(std::byte{0xFF});
    for (std::size_t i = 0; i < label.key.hash.digest.size(); ++i) {
      label.key.hash.digest[i] = static_cast<std::byte>(random_bits(seed_, page + 1, i));
    }
    label.tokens.resize(16);
    return label;
  }

  Status write_all() {
    std::size_t open = 0;
    for (std::size_t page = 0; page < options_.pages || open > 0;) {
      const bool more = page < options_.pages && open < options_.pages_in_flight;
      if (more && store_.write({page, label(page), source_})) {
        ++page;
        ++open;
        continue;
      }
      RETURN_IF_ERROR(collect([&](const kv::StoreReport&) { --open; }));
    }
    return ok_status();
  }

  Status read_all() {
    const std::size_t rooms = std::min(options_.pages_in_flight, options_.pages);
    std::vector<std::vector<std::byte>> pages(rooms, std::vector<std::byte>(options_.page_bytes));
    std::size_t page = 0;
    std::size_t open = 0;
    const auto ask = [&](std::size_t room) {
      if (page == options_.pages) return;
      store_.read({room, label(page++), pages[room]});
      ++open;
    };
    for (std::size_t room = 0; room < rooms; ++room) ask(room);
    while (open > 0) {
      RETURN_IF_ERROR(collect([&](const kv::StoreReport& report) {
        --open;
        ask(report.ticket);
      }));
    }
    return ok_status();
  }

  template <class Take>
  Status collect(const Take& take) {
    reports_.clear();
    store_.poll(reports_);
    for (const kv::StoreReport& report : reports_) {
      if (report.fault != kv::StoreFault::kNone) ++failed_;
      take(report);
    }
    if (!reports_.empty()) return ok_status();
    const std::int64_t left_ns = end_ns_ - clock_.now_ns();
    if (left_ns <= 0) {
      return Error{ErrorCode::kExhausted,
                   fmt::format("{}: {} pages of {} bytes took longer than {:.0f} s", store_.name(),
                               options_.pages, options_.page_bytes,
                               static_cast<double>(options_.timeout_ns) * 1e-9)};
    }
    signal_->wait(std::min<std::int64_t>(left_ns, 100'000'000));
    return ok_status();
  }

  kv::PageStore& store_;
  SpeedTrial options_;
  std::uint64_t seed_;
  std::shared_ptr<ReportSignal> signal_;
  SteadyClock clock_;
  std::int64_t end_ns_ = 0;
  std::vector<std::byte> source_;
  std::vector<kv::StoreReport> reports_;
  std::size_t failed_ = 0;
};

}  // namespace

double StoreSpeed::write_bytes_per_s() const {
  return write_pages_per_s() * static_cast<double>(page_bytes);
}
double StoreSpeed::read_bytes_per_s() const {
  return read_pages_per_s() * static_cast<double>(page_bytes);
}

Result<StoreSpeed> measure_speed(kv::PageStore& store, const SpeedTrial& trial) {
  return Trial(store, trial).run();
}

}  // namespace pagoda::store
