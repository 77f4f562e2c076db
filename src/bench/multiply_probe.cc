#include "bench/multiply_probe.h"

#include <array>
#include <cstddef>

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu_features.h"

namespace pagoda::bench {
namespace {

// Loops are written in assembly, as a compiler finds that their sums are all the same. Twelve sums
// do not wait for each other: two to four units, each with a latency of four cycles. They grow by
// 1 a round; zeros would run faster.
constexpr std::uint64_t kSums = 12;

#define PAGODA_FOR_EACH_SUM(step)                                                           \
  step("0") step("1") step("2") step("3") step("4") step("5") step("6") step("7") step("8") \
      step("9") step("10") step("11")

#if defined(__aarch64__)

std::uint64_t multiply_fp32_neon(std::uint64_t rounds) {
  std::uint64_t left = rounds;
#define PAGODA_CLEAR(sum) "movi v" sum ".2d, #0\n"
#define PAGODA_MULTIPLY(sum) "fmla v" sum ".4s, v16.4s, v16.4s\n"
  __asm__ volatile("fmov v16.4s, #1.0\n" PAGODA_FOR_EACH_SUM(PAGODA_CLEAR)  //
                   "1:\n" PAGODA_FOR_EACH_SUM(PAGODA_MULTIPLY)              //
                   "subs %0, %0, #1\n"
                   "b.ne 1b\n"
                   : "+r"(left)
                   :
                   : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                     "v16");
#undef PAGODA_CLEAR
#undef PAGODA_MULTIPLY
  return rounds * kSums * 4;
}

// Two rows of eight bytes with two others: usmmla v`sum`.4s, v16.16b, v16.16b, by its number, as
// this file is compiled for any CPU.
[[maybe_unused]] std::uint64_t multiply_int8_neon(std::uint64_t rounds) {
  std::uint64_t left = rounds;
#define PAGODA_CLEAR(sum) "movi v" sum ".2d, #0\n"
#define PAGODA_MULTIPLY(sum) ".inst 0x4e90ae00 + " sum "\n"
  __asm__ volatile("movi v16.16b, #3\n" PAGODA_FOR_EACH_SUM(PAGODA_CLEAR)  //
                   "1:\n" PAGODA_FOR_EACH_SUM(PAGODA_MULTIPLY)             //
                   "subs %0, %0, #1\n"
                   "b.ne 1b\n"
                   : "+r"(left)
                   :
                   : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                     "v16");
#undef PAGODA_CLEAR
#undef PAGODA_MULTIPLY
  return rounds * kSums * 2 * 2 * 8;
}

#elif defined(__x86_64__)

#define PAGODA_CLEAR(sum) "vxorps %%xmm" sum ", %%xmm" sum ", %%xmm" sum "\n"
#define PAGODA_MULTIPLY_LOOP(registers) \
  std::uint64_t left = rounds;          \
  const float factor = 1.0f;            \
  __asm__ volatile("vbroadcastss %1, %%" registers "12\n"               \
                   PAGODA_FOR_EACH_SUM(PAGODA_CLEAR)                    \
                   "1:\n" PAGODA_FOR_EACH_SUM(PAGODA_MULTIPLY)          \
                   "dec %0\n"                                           \
                   "jnz 1b\n"                                           \
                   "vzeroupper\n"                                       \
                   : "+r"(left)                                         \
                   : "m"(factor)                                        \
                   : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
                     "xmm8", "xmm9", "xmm10", "xmm11", "xmm12")

std::uint64_t multiply_fp32_avx2(std::uint64_t rounds) {
#define PAGODA_MULTIPLY(sum) "vfmadd231ps %%ymm12, %%ymm12, %%ymm" sum "\n"
  PAGODA_MULTIPLY_LOOP("ymm");
#undef PAGODA_MULTIPLY
  return rounds * kSums * 8;
}

std::uint64_t multiply_fp32_avx512(std::uint64_t rounds) {
#define PAGODA_MULTIPLY(sum) "vfmadd231ps %%zmm12, %%zmm12, %%zmm" sum "\n"
  PAGODA_MULTIPLY_LOOP("zmm");
#undef PAGODA_MULTIPLY
  return rounds * kSums * 16;
}

#undef PAGODA_CLEAR
#undef PAGODA_MULTIPLY_LOOP

// Tiles 0-3 are sums of 16 x 16, 4-7 the factors: 16 rows of 64 bytes each.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};

// Tiles are loaded by plain assembly: gcc 12 takes the configuration to be 8 bytes and may drop the
// stores that fill the rest.
__attribute__((target("amx-tile,amx-bf16,amx-int8"))) void begin_tiles(const std::byte* factors) {
  const TileConfig config;
  __asm__ volatile("ldtilecfg %0" : : "m"(config) : "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, factors, 64);
  _tile_loadd(5, factors, 64);
  _tile_loadd(6, factors, 64);
  _tile_loadd(7, factors, 64);
}

__attribute__((target("amx-tile,amx-bf16,amx-int8"))) std::uint64_t multiply_bf16_amx(
    std::uint64_t rounds) {
  alignas(64) std::array<std::uint16_t, 16 * 32> factors;
  factors.fill(0x3C80);  // 2^-6: 32 products and their sums stay small; zeros would run faster
  begin_tiles(reinterpret_cast<const std::byte*>(factors.data()));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return rounds * 4 * 16 * 16 * 32;
}

__attribute__((target("amx-tile,amx-bf16,amx-int8"))) std::uint64_t multiply_int8_amx(
    std::uint64_t rounds) {
  alignas(64) std::array<std::uint8_t, 16 * 64> factors;
  factors.fill(0x35);
  begin_tiles(reinterpret_cast<const std::byte*>(factors.data()));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
  return rounds * 4 * 16 * 16 * 64;
}

#endif

// For CPUs that nothing else is known of.
[[maybe_unused]] std::uint64_t multiply_fp32_plain(std::uint64_t rounds) {
  std::array<float, kSums> sums{};
  const volatile float factor = 1.0f;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const float same = factor;
    for (float& sum : sums) sum = sum * same + same;
  }
  volatile float sink = 0;
  for (const float sum : sums) sink = sink + sum;
  return rounds * kSums;
}

}  // namespace

std::vector<MultiplyProbe> multiply_probes() {
  std::vector<MultiplyProbe> probes;
#if defined(__aarch64__)
  probes.push_back({"fp32 NEON", multiply_fp32_neon});
#if defined(__linux__)
  if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) {
    probes.push_back({"int8 NEON", multiply_int8_neon});
  }
#endif
#elif defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    probes.push_back({"fp32 AVX2", multiply_fp32_avx2});
  }
  if (__builtin_cpu_supports("avx512f")) {
    probes.push_back({"fp32 AVX-512", multiply_fp32_avx512});
  }
  if (kernels::has_amx()) {
    probes.push_back({"bf16 AMX", multiply_bf16_amx});
    probes.push_back({"int8 AMX", multiply_int8_amx});
  }
#endif
  if (probes.empty()) probes.push_back({"fp32", multiply_fp32_plain});
  return probes;
}

}  // namespace pagoda::bench
