// Instructions for warp-specialised blocks: register reallocation (setmaxnreg) and named barriers.
#pragma once

#include <cstdint>

namespace pagoda::kernels::cuda {

// Sets the registers of each thread of a warpgroup. The block keeps as many as it was launched
// with: inc waits until dec of other warpgroups has released enough.
template <int kEach>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kEach));
}
template <int kEach>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kEach));
}

// Waits for the first kThreads threads of the block, whose other threads do not take part.
template <int kThreads>
__device__ __forceinline__ void named_barrier_sync() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}
// Waits for the other threads that name the same barrier, `threads` in all, whole warps.
__device__ __forceinline__ void named_barrier_sync(std::uint32_t barrier, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace pagoda::kernels::cuda
