#include "kernels/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace pagoda::kernels {

#if defined(__x86_64__)

bool has_avx2() {
  // clang 14 knows no "f16c" to ask for: CPUID 1, ECX.
  constexpr unsigned kF16c = 1u << 29;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kF16c) != 0;
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

bool has_amx() {
  constexpr unsigned kAmxBf16 = 1u << 22;  // CPUID 7, EDX
  constexpr unsigned kAmxTile = 1u << 24;
  constexpr unsigned kAmxInt8 = 1u << 25;
  constexpr unsigned kAll = kAmxBf16 | kAmxTile | kAmxInt8;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (!has_avx512() || !__builtin_cpu_supports("avx512bf16")) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kAll) != kAll) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#else

bool has_avx2() { return false; }
bool has_avx512() { return false; }
bool has_amx() { return false; }

#endif

#if defined(__aarch64__) && defined(__linux__)

bool has_neon_i8mm_bf16() {
  constexpr unsigned long kProducts = HWCAP2_I8MM | HWCAP2_BF16;
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 &&
         (getauxval(AT_HWCAP2) & kProducts) == kProducts;
}

#else

bool has_neon_i8mm_bf16() { return false; }

#endif

}  // namespace pagoda::kernels
