// Tokens drawn on a GPU are those that the CPU's sampler draws from the same logits; so are those
// of the scalar reference, which needs no GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "device/device_fixture.h"
#include "engine/sampler.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/random_matrix.h"
#include "kernels/cuda/reference.h"
#include "kernels/select.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;

struct Question {
  std::vector<float> logits;
  engine::SamplingParams options;
  std::uint64_t position = 0;
};

float number(std::uint64_t seed, std::uint64_t index) {
  return static_cast<float>(random_unit(seed, 5, index));
}

// Rows as models give them, and rows as nobody does: flat, with ties, with a few far above the
// rest, all of these close to each other in id.
std::vector<float> row_of(std::uint64_t seed, std::uint32_t vocabulary) {
  std::vector<float> row(vocabulary);
  for (std::uint32_t i = 0; i < vocabulary; ++i) {
    const float u = number(seed, i);
    switch (seed % 6) {
      case 0:
        row[i] = 20 * u - 12;
        break;
      case 1:  // a normal's tail
        row[i] =
            4 * std::sqrt(-2 * std::log(u + 1e-7f)) * std::cos(6.2831853f * number(seed + 1, i));
        break;
      case 2:  // many equal
        row[i] = std::floor(8 * u) - 4;
        break;
      case 3:
        row[i] = i % 2 == 0 ? 0.0f : -0.0f;
        break;
      case 4:  // one thread of a block has all the best
        row[i] = i % 1024 == 7 ? 30 + u : u;
        break;
      default:  // a steep head
        row[i] = -0.5f * static_cast<float>(i * 7919ull % vocabulary) / 50 + u;
    }
  }
  return row;
}

std::vector<Question> questions() {
  std::vector<Question> all;
  const std::uint32_t sizes[] = {1, 31, 512, 1025, 32000, 49152, 128256};
  for (std::uint64_t seed = 0; seed < 252; ++seed) {
    Question question;
    const std::uint32_t vocabulary = sizes[seed % 7];
    question.logits = row_of(seed, vocabulary);
    engine::SamplingParams& options = question.options;
    constexpr float kTemperatures[] = {0.0f, 0.3f, 0.7f, 1.0f, 1.5f, 20.0f};
    options.temperature = kTemperatures[seed / 7 % 6];
    constexpr float kTopP[] = {1.0f, 0.95f, 0.5f, 0.01f};
    options.top_p = kTopP[seed / 3 % 4];
    constexpr float kMinP[] = {0.0f, 0.05f, 1.0f};
    options.min_p = kMinP[seed / 5 % 3];
    constexpr std::uint32_t kTopK[] = {0, 1, 40, 1024, 2, 200000};
    options.top_k = kTopK[seed / 2 % 6];
    options.seed = random_bits(9, 9, seed);
    question.position = seed * 977;
    all.push_back(std::move(question));
  }
  return all;
}

std::uint32_t by_sampler(const Question& question) {
  engine::SamplerScratch scratch(kernels::ref_set(), question.logits.size());
  const engine::SamplingState state(question.options, {});
  return engine::sample(question.logits, state, scratch, question.position).value().token.value();
}

cuda::GpuSamplingParams sampling_params_of(const Question& question, std::uint32_t row) {
  const engine::SamplingParams& options = question.options;
  return {.row = row,
          .inverse_temperature = engine::is_greedy(options) ? 0.0f : 1.0f / options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .seed_low = static_cast<std::uint32_t>(options.seed),
          .seed_high = static_cast<std::uint32_t>(options.seed >> 32),
          .position = static_cast<std::uint32_t>(question.position)};
}

TEST(SampleReferenceTest, SamplesWhatTheSamplerSamples) {
  std::size_t number = 0;
  for (const Question& question : questions()) {
    EXPECT_EQ(cuda::reference::sample(question.logits, sampling_params_of(question, 0)),
              by_sampler(question))
        << "question " << number;
    ++number;
  }
}

TEST(SampleTest, SamplesWhatTheSamplerSamples) {
  REQUIRE_GPU();
  device::Stream stream = device::Stream::create().value();
  const std::vector<Question> all = questions();
  for (std::size_t size = 0; size < 7; ++size) {  // rows of one length together
    std::vector<float> logits;
    std::vector<cuda::GpuSamplingParams> samples;
    std::vector<std::uint32_t> expected;
    for (std::size_t i = size; i < all.size(); i += 7) {
      samples.push_back(sampling_params_of(all[i], static_cast<std::uint32_t>(samples.size())));
      logits.insert(logits.end(), all[i].logits.begin(), all[i].logits.end());
      expected.push_back(by_sampler(all[i]));
    }
    samples.push_back({.row = cuda::kNoRow});
    expected.push_back(0xFFFFFFFFu);  // as it was
    const auto bytes_of = [](const auto& values) {
      return std::as_bytes(std::span(values.data(), values.size()));
    };
    const device::Buffer rows = device::Buffer::allocate(bytes_of(logits).size(), "rows").value();
    const device::Buffer asked =
        device::Buffer::allocate(bytes_of(samples).size(), "samples").value();
    const device::Buffer chosen =
        device::Buffer::allocate(samples.size() * 4, "sampled_tokens").value();
    ASSERT_TRUE(stream.copy_to_device(rows.data(), bytes_of(logits).data(), rows.bytes()).ok());
    ASSERT_TRUE(stream.copy_to_device(asked.data(), bytes_of(samples).data(), asked.bytes()).ok());
    ASSERT_TRUE(stream.fill(chosen.data(), 0xFF, chosen.bytes()).ok());
    cuda::launch_sample({.logits = rows.as<float>(),
                         .samples = asked.as<cuda::GpuSamplingParams>(),
                         .count = static_cast<std::uint32_t>(samples.size()),
                         .vocabulary = static_cast<std::uint32_t>(all[size].logits.size()),
                         .sampled_tokens = chosen.as<std::uint32_t>()},
                        stream.handle());
    ASSERT_TRUE(device::last_launch_error().ok());
    std::vector<std::uint32_t> got(samples.size());
    ASSERT_TRUE(
        stream.copy_to_host(reinterpret_cast<std::byte*>(got.data()), chosen.data(), chosen.bytes())
            .ok());
    ASSERT_TRUE(stream.wait().ok());
    EXPECT_EQ(got, expected) << "rows of " << all[size].logits.size();
  }
}

TEST(SampleTest, TakesTheLargestLogitTheLowestOfEqualsAndNothingBesideANaN) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const std::uint32_t vocabulary = 5003;
  std::vector<float> logits(4 * vocabulary);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = uniform(1, i, 5.0f) - 20.0f;
  logits[777] = logits[4000] = -1.0f;
  logits[vocabulary + 5002] = 0.0f;
  logits[vocabulary + 5001] = -0.0f;
  logits[2 * vocabulary + 3] = NAN;
  logits[3 * vocabulary + 3] = INFINITY;
  const device::Buffer rows = gpu.send(logits);
  const device::Buffer samples = gpu.send(
      std::vector<cuda::GpuSamplingParams>{{.row = 0}, {.row = 1}, {.row = 2}, {.row = 3}});
  const device::Buffer sampled_tokens = gpu.poisoned(4 * 4);
  cuda::launch_sample({.logits = rows.as<float>(),
                       .samples = samples.as<cuda::GpuSamplingParams>(),
                       .count = 4,
                       .vocabulary = vocabulary,
                       .sampled_tokens = sampled_tokens.as<std::uint32_t>()},
                      gpu.stream().handle());
  EXPECT_EQ(gpu.fetch<std::uint32_t>(sampled_tokens, 4),
            (std::vector<std::uint32_t>{777, 5001, cuda::kNotSampled, cuda::kNotSampled}));
}

}  // namespace
}  // namespace pagoda::gpu_test
