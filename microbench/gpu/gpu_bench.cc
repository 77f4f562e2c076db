// Kernels of a GPU alone, on the Llama-3-8B shape: products over batch sizes, attention over pages.
// One JSON object on stdout; `gpu_bench products` or `gpu_bench attention` for a part.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "device/device.h"
#include "kernels/cuda/ops.h"
#include "model/attention_plan.h"
#include "value_or_exit.h"

namespace pagoda {
namespace {

namespace cuda = kernels::cuda;

constexpr double kBytesPerSecond = 4.3e12;  // what a copy reaches on an H200

device::Buffer random_buffer(std::uint64_t bytes, float bound, device::Stream& stream) {
  auto buffer = value_or_exit(device::Buffer::allocate(bytes, "a benchmark"));
  cuda::launch_random_bf16(buffer.as<cuda::Bf16>(), bytes / 2, bound, bytes, stream.handle());
  return buffer;
}

// Median seconds of one call, of several rounds of `calls` each.
double seconds_of(device::Stream& stream, int calls, const std::function<void(int)>& call) {
  auto begin = value_or_exit(device::GpuEvent::create());
  auto end = value_or_exit(device::GpuEvent::create());
  std::vector<double> seconds;
  for (int round = 0; round < 6; ++round) {
    value_or_exit(begin.record(stream));
    for (int i = 0; i < calls; ++i) call(i);
    value_or_exit(end.record(stream));
    value_or_exit(device::last_launch_error());
    value_or_exit(end.wait());
    if (round > 0) seconds.push_back(value_or_exit(end.seconds_since(begin)) / calls);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

class Report {
 public:
  void add(const std::string& row) {
    std::printf("%s\n  %s", first_ ? "[" : ",", row.c_str());
    std::fflush(stdout);
    first_ = false;
  }
  ~Report() { std::printf("\n]\n"); }

 private:
  bool first_ = true;
};

struct Shape {
  const char* name;
  std::uint32_t rows;
  std::uint32_t columns;
  cuda::Epilogue epilogue;
};

void bench_products(device::Stream& stream, Report& report) {
  const Shape shapes[] = {{"qkv", 6144, 4096, cuda::Epilogue::kStore},
                          {"attention_output", 4096, 4096, cuda::Epilogue::kAdd},
                          {"gate_up", 28672, 4096, cuda::Epilogue::kSwiGlu},
                          {"down", 4096, 14336, cuda::Epilogue::kAdd},
                          {"output", 128256, 4096, cuda::Epilogue::kStore}};
  const std::pair<const char*, cuda::WeightFormat> formats[] = {
      {"bf16", cuda::WeightFormat::kBf16},
      {"q8_0", cuda::WeightFormat::kInt8},
      {"q4_0", cuda::WeightFormat::kInt4}};
  const device::Buffer x = random_buffer(2 * cuda::activation_values(8192, 14336), 1.0f, stream);
  const device::Buffer y = random_buffer(4ull * 8192 * 28672, 1.0f, stream);
  const device::Buffer activations =
      random_buffer(2 * cuda::activation_values(8192, 14336), 1, stream);
  for (const auto& [format_name, format] : formats) {
    for (const Shape& shape : shapes) {
      const std::uint64_t bytes = cuda::packed_bytes(format, shape.rows, shape.columns);
      // Copies enough that none is still in the second-level cache when its turn comes again.
      const int copies = static_cast<int>(std::max<std::uint64_t>(2, 400'000'000 / bytes + 1));
      std::vector<device::Buffer> weights;
      for (int i = 0; i < copies; ++i) weights.push_back(random_buffer(bytes, 0.02f, stream));
      for (const std::uint32_t rows : {1u, 8u, 16u, 32u, 64u, 128u, 256u, 512u, 2048u, 8192u}) {
        if (rows > 256 && shape.rows > 100000) continue;
        const double seconds = seconds_of(stream, rows > 512 ? copies : 4 * copies, [&](int i) {
          cuda::launch_gemm(
              {.weight = {format, weights[i % copies].data(), shape.rows, shape.columns},
               .x = x.as<cuda::Bf16>(),
               .rows = rows,
               .epilogue = shape.epilogue,
               .out = y.as<float>(),
               .out_stride = shape.rows,
               .activations = activations.as<cuda::Bf16>()},
              stream.handle());
        });
        char row[256];
        std::snprintf(row, sizeof row,
                      "{\"product\": \"%s\", \"weights\": \"%s\", \"rows\": %u, \"us\": %.2f, "
                      "\"weight_tb_s\": %.3f, \"tflop_s\": %.1f}",
                      shape.name, format_name, rows, seconds * 1e6,
                      static_cast<double>(bytes) / seconds * 1e-12,
                      2e-12 * rows * shape.rows * shape.columns / seconds);
        report.add(row);
      }
    }
  }
}

struct Work {
  std::uint32_t sequences;
  std::uint32_t rows;      // of each
  std::uint32_t position;  // of its first row
};

constexpr std::uint32_t kHeads = 32;
constexpr std::uint32_t kKvHeads = 8;
constexpr std::uint32_t kDim = 128;

// Sequences over pages that are dealt out in turn, and everything attention reads of them.
class AttentionBench {
 public:
  AttentionBench(const Work& work, kv::memory::Elements elements, device::Stream& stream)
      : stream_(stream) {
    const kv::memory::PageLayout layout = {.elements = elements,
                                           .block_tokens = 16,
                                           .layers = 1,
                                           .kv_heads = kKvHeads,
                                           .key_dim = kDim,
                                           .value_dim = kDim};
    const std::uint32_t blocks = (work.position + work.rows + 15) / 16;
    std::vector<cuda::BatchSequence> sequences;
    std::vector<std::uint32_t> table;
    for (std::uint32_t s = 0; s < work.sequences; ++s) {
      sequences.push_back({s * work.rows, work.rows, work.position, s * blocks});
      for (std::uint32_t b = 0; b < blocks; ++b) table.push_back(b * work.sequences + s);
    }
    copy_bytes_ = table.size() * layout.page_bytes();
    copies_ = 400'000'000 / copy_bytes_ + 1;
    model::AttentionPlan plan;
    plan.fill(sequences, {.heads = kHeads, .kv_heads = kKvHeads}, {});
    const std::uint32_t rows = work.sequences * work.rows;
    const auto random = [&](std::uint64_t bytes) {
      return buffers_.emplace_back(random_buffer(bytes, 1.0f, stream)).data();
    };
    attend_ = {.query = reinterpret_cast<std::uint16_t*>(random(2ull * rows * kHeads * kDim)),
               .sequences = send(sequences),
               .pages = {random(copies_ * copy_bytes_), layout, 0, send(table)},
               .heads = kHeads,
               .scale = 0.088f,
               .items = send(plan.items),
               .item_count = send(std::vector{static_cast<std::uint32_t>(plan.items.size())}),
               .items_max = static_cast<std::uint32_t>(plan.items.size()),
               .rows = rows,
               .partials =
                   reinterpret_cast<float*>(random(4ull * (1u << 19) * cuda::partial_floats(kDim))),
               .activations = reinterpret_cast<cuda::Bf16*>(
                   random(2 * cuda::activation_values(rows, kHeads * kDim)))};
    wide_ = with(plan.wide);
    merge_ = with(plan.merges);
  }

  // Call `call` has pages of its own: none is still in the second-level cache when its turn comes.
  void launch(int call) const {
    const auto moved = [&](cuda::PagedAttention job) {
      job.pages.data += static_cast<std::uint64_t>(call) % copies_ * copy_bytes_;
      return job;
    };
    if (wide_.items_max > 0) cuda::launch_paged_attention_wide(moved(wide_), stream_.handle());
    if (attend_.items_max > 0) cuda::launch_paged_attention(moved(attend_), stream_.handle());
    if (merge_.items_max > 0) cuda::launch_merge_splits(merge_, stream_.handle());
  }

 private:
  template <class T>
  const T* send(const std::vector<T>& values) {
    const std::uint64_t bytes = std::max<std::uint64_t>(1, values.size()) * sizeof(T);
    buffers_.push_back(value_or_exit(device::Buffer::allocate(bytes, "a benchmark")));
    value_or_exit(stream_.copy_to_device(buffers_.back().data(),
                                         reinterpret_cast<const std::byte*>(values.data()),
                                         values.size() * sizeof(T)));
    value_or_exit(stream_.wait());
    return buffers_.back().as<T>();
  }

  cuda::PagedAttention with(const std::vector<cuda::AttentionItem>& items) {
    cuda::PagedAttention job = attend_;
    job.items_max = static_cast<std::uint32_t>(items.size());
    job.items = send(items);
    job.item_count = send(std::vector{job.items_max});
    return job;
  }

  device::Stream& stream_;
  std::vector<device::Buffer> buffers_;
  std::uint64_t copy_bytes_ = 0;
  std::uint64_t copies_ = 1;
  cuda::PagedAttention attend_;
  cuda::PagedAttention wide_;
  cuda::PagedAttention merge_;
};

void bench_attention(const char* name, kv::memory::Elements elements, device::Stream& stream,
                     Report& report) {
  for (const Work& work : {Work{1, 1, 4095},
                           {1, 1, 31999},
                           {32, 1, 4095},
                           {8, 1, 31999},
                           {256, 1, 1023},
                           {1, 128, 8064},
                           {1, 512, 7680},
                           {8, 512, 0},
                           {1, 4096, 0},
                           {1, 16384, 0},
                           {1, 8192, 24576}}) {
    const AttentionBench bench(work, elements, stream);
    const double seconds =
        seconds_of(stream, work.rows == 1 ? 20 : 3, [&](int i) { bench.launch(i); });
    const double keys =
        static_cast<double>(work.position) * work.rows + 0.5 * work.rows * (work.rows + 1.0);
    const auto row_bytes = [](kv::memory::Element element) {
      return static_cast<double>(kv::memory::row_bytes(element, kDim) +
                                 kv::memory::scale_groups(element, kDim) *
                                     kv::memory::scale_bytes(element));
    };
    const double bytes = (row_bytes(elements.keys) + row_bytes(elements.values)) * kKvHeads *
                         (work.position + work.rows) * work.sequences;
    char row[256];
    std::snprintf(row, sizeof row,
                  "{\"attention\": \"%u x %u rows after %u\", \"kv\": \"%s\", \"us\": %.2f, "
                  "\"tb_s\": %.3f, "
                  "\"share\": %.3f, \"tflop_s\": %.1f}",
                  work.sequences, work.rows, work.position, name, seconds * 1e6,
                  bytes / seconds * 1e-12, bytes / seconds / kBytesPerSecond,
                  4e-12 * kDim * kHeads * keys * work.sequences / seconds);
    report.add(row);
  }
}

}  // namespace
}  // namespace pagoda

int main(int count, char** arguments) {
  using namespace pagoda;
  const std::string part = count > 1 ? arguments[1] : "all";
  value_or_exit(device::open_gpu());
  value_or_exit(kernels::cuda::prepare_kernels());
  device::Stream stream = value_or_exit(device::Stream::create());
  Report report;
  if (part != "attention") bench_products(stream, report);
  if (part != "products") {
    using kv::memory::Element;
    bench_attention("bf16", Element::kBF16, stream, report);
    bench_attention("fp8", Element::kE4M3, stream, report);
    bench_attention("int8", Element::kInt8, stream, report);
    bench_attention("k8v4", {Element::kInt8, Element::kInt4}, stream, report);
    bench_attention("int4", Element::kInt4, stream, report);
    bench_attention("bf16/int8", {Element::kBF16, Element::kInt8}, stream, report);
  }
}
