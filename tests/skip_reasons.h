// Why a test may be skipped, also where CI=true: this machine lacks, or has, what no package gives,
// or a model whose terms nobody accepted here.
// A reason begins with one of these, then ": " and what was found. tools/run_tests counts skipped
// tests by that beginning, and lets under CI=true no other one pass.
#pragma once

namespace pagoda {

inline constexpr const char* kNeedsGpu = "needs a GPU";
inline constexpr const char* kNeedsNoGpu = "needs a machine without a GPU";
inline constexpr const char* kNeedsDirectIo = "needs direct I/O";
inline constexpr const char* kNeedsUring = "needs io_uring";
inline constexpr const char* kNeedsGemma = "needs Gemma 3 270M";

}  // namespace pagoda
