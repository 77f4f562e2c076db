#include "base/heap.h"

#include <cstdlib>  // defines __GLIBC__ where the C library is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace pagoda {

#ifdef __GLIBC__
void mmap_large_blocks() { mallopt(M_MMAP_THRESHOLD, 1 << 20); }
void trim_heap() { malloc_trim(0); }
#else
void mmap_large_blocks() {}
void trim_heap() {}
#endif

}  // namespace pagoda
