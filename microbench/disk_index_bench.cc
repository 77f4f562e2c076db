// How long a store takes to know what it holds: a million slots, all used.
#include <benchmark/benchmark.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "base/random.h"
#include "store/disk/posix_files.h"
#include "store/disk/slab.h"

namespace pagoda::store {
namespace {

constexpr SlotGeometry kGeometry = {1024, 16};

// A store whose slab is a hole: opening reads its index only.
std::string make_store(std::uint64_t slots) {
  std::string path = (std::filesystem::temp_directory_path() / "pagoda_index_XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) std::abort();
  PosixFiles layer(path);
  const SlotCodec codec(kGeometry, std::nullopt);
  const std::uint64_t bytes = slots * (kGeometry.slot_bytes() + kRecordBytes) + 3 * kIoAlignment;
  Result<SlabFiles> files = SlabFiles::open(layer, codec, bytes);
  if (!files.ok()) std::abort();
  std::vector<SlotChange> changes;
  for (std::uint64_t i = 0; i < slots; ++i) {
    SlotChange change;
    change.slot = static_cast<SlotNumber>(i);
    for (std::uint64_t half = 0; half < 2; ++half) {
      const std::uint64_t bits = random_bits(1, i, half);
      std::memcpy(change.record.key.bytes.data() + 8 * half, &bits, 8);
    }
    change.record.used_us = random_bits(2, i, 0) >> 1;
    changes.push_back(change);
  }
  if (files.value().write_records(changes) != 0 || files.value().sync_index() != 0) std::abort();
  return path;
}

void open_store(benchmark::State& state) {
  const auto slots = static_cast<std::uint64_t>(state.range(0));
  const std::string path = make_store(slots);
  for (auto _ : state) {
    PosixFiles layer(path);
    const SlotCodec codec(kGeometry, std::nullopt);
    Result<SlabFiles> files = SlabFiles::open(
        layer, codec, slots * (kGeometry.slot_bytes() + kRecordBytes) + 3 * kIoAlignment);
    Slab slab(std::move(files).value(), codec, wall_clock_us);
    if (slab.load([] {}) != 0 || slab.counts().pages != slots) state.SkipWithError("not all there");
  }
  std::filesystem::remove_all(path);
}
BENCHMARK(open_store)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pagoda::store
