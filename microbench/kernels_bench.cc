// Kernel micro-benchmarks on one thread, for every kernel set this CPU has.
//   kernels_bench --benchmark_filter=matmul/avx2
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/large_array.h"
#include "base/random.h"
#include "kernels/select.h"

namespace pagoda::kernels {
namespace {

// y = x w^T with the shape of SmolLM2's gate projection (576 to 1536), Q4_1.
void bench_matmul(benchmark::State& state, const KernelSet& set, gguf::TensorType type) {
  constexpr std::size_t kColumns = 768;
  constexpr std::size_t kOutputs = 1536;
  const auto rows = static_cast<std::size_t>(state.range(0));
  const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
  const std::size_t row_bytes = kColumns / info.block_elements * info.block_bytes;
  std::vector<std::byte> bytes(kOutputs * row_bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(random_bits(1, 0, i) & 0xBF);  // no infinities
  }
  WeightMatrix weight = {type, bytes.data(), kOutputs, kColumns, row_bytes, nullptr};
  LargeArray<std::byte> packed(set.packed_bytes(weight));
  set.pack(weight, 0, kOutputs, packed.data());
  weight.packed = packed.data();
  const LargeArray<std::byte> x(activation_bytes(set.numerics, kColumns, rows), std::byte{0x3F});
  std::vector<float> y(rows * kOutputs);
  LargeArray<std::byte> scratch(set.matmul_scratch(kColumns));
  const Matmul job = {.x = x.data(),
                      .rows = rows,
                      .weight = weight,
                      .y = y.data(),
                      .y_stride = kOutputs,
                      .accumulate = false};
  for (auto _ : state) {
    set.matmul(job, 0, kOutputs, scratch.data());
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.counters["GMAC/s"] =
      benchmark::Counter(static_cast<double>(rows * kColumns * kOutputs) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate);
}

// One token with SmolLM2's heads (9 query, 3 KV, 64) over a context in 16-token blocks.
void bench_attention(benchmark::State& state, const KernelSet& set) {
  const auto context = static_cast<std::uint64_t>(state.range(0));
  const kv::memory::PageLayout layout = {.elements = set.kv_element,
                                         .block_tokens = 16,
                                         .layers = 1,
                                         .kv_heads = 3,
                                         .key_dim = 64,
                                         .value_dim = 64,
                                         .value_order = set.value_order,
                                         .key_order = set.key_order};
  std::vector<kv::BlockId> table;
  for (std::uint32_t block = 0; block < context / 16; ++block) table.emplace_back(block);
  LargeArray<std::byte> pages(table.size() * layout.page_bytes());
  std::memset(pages.data(), 0x2E, table.size() * layout.page_bytes());
  const std::vector<float> q(9 * 64, 0.1f);
  std::vector<float> out(9 * 64);
  LargeArray<std::byte> scratch(set.attention_scratch(64, 64));
  std::vector<float> total(partial_floats(3, 64));
  std::vector<float> partial = total;
  const Attention job = {.heads = 9, .window = 0, .scale = 0.125f};
  const AttentionRows row = {{{pages.data(), layout, 0}, table.data()}, q.data(), context - 1, 1};
  for (auto _ : state) {
    for (std::uint32_t head = 0; head < 3; ++head) {
      const SplitRange splits = visible_splits(context - 1, 0, set.attention_split);
      set.attend_split(job, row, head, 0, scratch.data(), total.data());
      for (std::uint64_t split = 1; split < splits.last; ++split) {
        set.attend_split(job, row, head, split, scratch.data(), partial.data());
        set.merge_partials(total.data(), partial.data(), 3, 64);
      }
      set.normalise_partial(total.data(), 3, 64, out.data() + head * 3 * 64);
    }
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(pages.size()) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

const int kRegistered = [] {
  for (const KernelSet* const set : available_sets()) {
    const std::string name(set->name);
    for (const gguf::TensorType type : {gguf::TensorType::kF32, gguf::TensorType::kF16,
                                        gguf::TensorType::kQ4_1, gguf::TensorType::kQ4_K}) {
      const std::string type_name(gguf::tensor_type_info(type).name);
      benchmark::RegisterBenchmark(
          ("matmul/" + name + "/" + type_name).c_str(),
          [set, type](benchmark::State& state) { bench_matmul(state, *set, type); })
          ->Arg(1)
          ->Arg(8)
          ->Arg(128)
          ->Unit(benchmark::kMillisecond);
    }
    benchmark::RegisterBenchmark(("attention/" + name).c_str(),
                                 [set](benchmark::State& state) { bench_attention(state, *set); })
        ->Arg(128)
        ->Arg(4096)
        ->Unit(benchmark::kMicrosecond);
  }
  return 0;
}();

}  // namespace
}  // namespace pagoda::kernels
