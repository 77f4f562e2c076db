// What a GPU's host side costs: tokens drawn from rows of logits, pages moved to and from pinned
// memory. One JSON array on stdout.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "device/device.h"
#include "kernels/cuda/ops.h"
#include "value_or_exit.h"

namespace pagoda {
namespace {

namespace cuda = kernels::cuda;

// Median seconds of `call`, on the stream's own clock.
double seconds_of(device::Stream& stream, const std::function<void()>& call) {
  auto begin = value_or_exit(device::GpuEvent::create());
  auto end = value_or_exit(device::GpuEvent::create());
  std::vector<double> seconds;
  for (int round = 0; round < 12; ++round) {
    value_or_exit(begin.record(stream));
    call();
    value_or_exit(end.record(stream));
    value_or_exit(device::last_launch_error());
    value_or_exit(end.wait());
    if (round > 1) seconds.push_back(value_or_exit(end.seconds_since(begin)));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

const char* separator = "[\n  ";

void print_row(const std::string& row) {
  std::printf("%s%s", separator, row.c_str());
  std::fflush(stdout);
  separator = ",\n  ";
}

constexpr std::uint32_t kVocabulary = 128256;
constexpr std::uint32_t kRows = 256;

// Rows of a normal distribution, spread as a model's: a few tokens have most of the mass.
device::Buffer make_logits(device::Stream& stream) {
  std::vector<float> row(kVocabulary + 1024);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double u = random_unit(1, 1, i);
    row[i] = static_cast<float>(2.5 * std::sqrt(-2 * std::log(u + 1e-12)) *
                                std::cos(6.283185307 * random_unit(1, 2, i)));
  }
  auto logits = value_or_exit(
      device::Buffer::allocate(std::uint64_t{kRows} * kVocabulary * sizeof(float), "logits"));
  for (std::uint32_t r = 0; r < kRows; ++r) {  // the same row, shifted
    value_or_exit(stream.copy_to_device(logits.data() + std::uint64_t{r} * kVocabulary * 4,
                                        reinterpret_cast<const std::byte*>(row.data() + r),
                                        kVocabulary * sizeof(float)));
  }
  value_or_exit(stream.wait());
  return logits;
}

void bench_draws(device::Stream& stream) {
  const device::Buffer logits = make_logits(stream);
  const std::pair<const char*, cuda::GpuSamplingParams> ways[] = {
      {"greedy", {}},
      {"temperature 1", {.inverse_temperature = 1}},
      {"temperature 1, top_p 0.9", {.inverse_temperature = 1, .top_p = 0.9f}},
      {"temperature 0.7, top_p 0.9, min_p 0.05",
       {.inverse_temperature = 1 / 0.7f, .top_p = 0.9f, .min_p = 0.05f}},
      {"temperature 1, top_k 40", {.inverse_temperature = 1, .top_k = 40}},
      {"temperature 1, top_k 1024, top_p 0.5",
       {.inverse_temperature = 1, .top_k = 1024, .top_p = 0.5f}}};
  auto sampled_tokens = value_or_exit(device::Buffer::allocate(kRows * 4, "sampled_tokens"));
  for (const auto& [name, way] : ways) {
    for (const std::uint32_t count : {1u, 32u, 256u}) {
      std::vector<cuda::GpuSamplingParams> samples(count, way);
      for (std::uint32_t i = 0; i < count; ++i) {
        samples[i].row = samples[i].seed_low = i;
      }
      auto asked = value_or_exit(
          device::Buffer::allocate(count * sizeof(cuda::GpuSamplingParams), "samples"));
      value_or_exit(stream.copy_to_device(
          asked.data(), reinterpret_cast<const std::byte*>(samples.data()), asked.bytes()));
      const double seconds = seconds_of(stream, [&] {
        cuda::launch_sample({.logits = logits.as<float>(),
                             .samples = asked.as<cuda::GpuSamplingParams>(),
                             .count = count,
                             .vocabulary = kVocabulary,
                             .sampled_tokens = sampled_tokens.as<std::uint32_t>()},
                            stream.handle());
      });
      char text[256];
      std::snprintf(text, sizeof text,
                    "{\"draw\": \"%s\", \"vocabulary\": %u, \"rows\": %u, \"us\": %.1f}", name,
                    kVocabulary, count, seconds * 1e6);
      print_row(text);
    }
  }
}

// As engine/backends/gpu_page_copier.h moves them: 16 copies, then one wait.
void bench_moves(device::Stream& stream) {
  constexpr int kPages = 16;
  for (const std::uint64_t page : {std::uint64_t{368640}, std::uint64_t{2} << 20}) {
    auto host = value_or_exit(device::PinnedBuffer::allocate(kPages * page, "pages"));
    auto pool = value_or_exit(device::Buffer::allocate(64 * page, "pages"));
    for (const bool out : {true, false}) {
      const double seconds = seconds_of(stream, [&] {
        for (int i = 0; i < kPages; ++i) {
          std::byte* const far = pool.data() + static_cast<std::uint64_t>(i * 37 % 64) * page;
          std::byte* const near = host.data() + static_cast<std::uint64_t>(i) * page;
          value_or_exit(stream.copy(out ? near : far, out ? far : near, page));
        }
      });
      char text[256];
      std::snprintf(text, sizeof text,
                    "{\"move\": \"%s\", \"page_bytes\": %llu, \"pages\": %d, \"gb_s\": %.2f}",
                    out ? "to the host" : "to the GPU", static_cast<unsigned long long>(page),
                    kPages, static_cast<double>(kPages * page) / seconds * 1e-9);
      print_row(text);
    }
  }
}

}  // namespace
}  // namespace pagoda

int main() {
  using namespace pagoda;
  value_or_exit(device::open_gpu());
  value_or_exit(kernels::cuda::prepare_kernels());
  device::Stream stream = value_or_exit(device::Stream::create());
  bench_draws(stream);
  bench_moves(stream);
  std::printf("\n]\n");
}
