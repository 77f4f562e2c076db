#include "kv/tiers/page_copier.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/large_array.h"
#include "base/thread_pool.h"
#include "kv/tiers/auto_tuner.h"

namespace pagoda::kv {
namespace {

// Large enough that taking a piece costs nothing beside copying it, small enough to share out a
// page; less in all is copied sooner than a second thread wakes.
constexpr std::uint64_t kPieceBytes = 128 << 10;
constexpr std::uint64_t kSharedFromBytes = 4 * kPieceBytes;

class MemoryCopier final : public PageCopier {
 public:
  explicit MemoryCopier(std::size_t threads) : pool_(threads) {}

  Result<HostMemory> take_memory(std::uint64_t bytes) override {
    auto* const memory = static_cast<std::byte*>(allocate_large(std::max<std::uint64_t>(1, bytes)));
    return HostMemory(memory, [](std::byte* taken) { free_large(taken); });
  }
  Status order() override { return ok_status(); }

  Status copy(std::span<const PageCopy> moves) override {
    std::uint64_t bytes = 0;
    for (const PageCopy& each : moves) bytes += each.bytes;
    if (pool_.threads() == 1 || bytes < kSharedFromBytes) {
      copy_all(moves);
      return ok_status();
    }
    const bool together = way_.choose() == 1;
    const std::int64_t begin_ns = clock_.now_ns();
    if (together) {
      cut(moves);
      pool_.run(pieces_.size(), [this](WorkRange range) {
        copy_all(std::span(pieces_).subspan(range.begin, range.end - range.begin));
      });
    } else {
      copy_all(moves);
    }
    way_.note(static_cast<double>(bytes), seconds_between(begin_ns, clock_.now_ns()));
    return ok_status();
  }

 private:
  static void copy_all(std::span<const PageCopy> moves) {
    for (const PageCopy& each : moves) std::memcpy(each.to, each.from, each.bytes);
  }
  void cut(std::span<const PageCopy> moves) {
    pieces_.clear();
    for (const PageCopy& each : moves) {
      for (std::uint64_t at = 0; at < each.bytes; at += kPieceBytes) {
        pieces_.push_back({each.to + at, each.from + at, std::min(kPieceBytes, each.bytes - at)});
      }
    }
  }

  ThreadPool pool_;
  AutoTuner way_;
  const SteadyClock clock_;
  std::vector<PageCopy> pieces_;
};

}  // namespace

std::unique_ptr<PageCopier> memory_copier(std::size_t threads) {
  return std::make_unique<MemoryCopier>(threads);
}

}  // namespace pagoda::kv
