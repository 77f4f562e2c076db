#include "base/heap.h"

#include <cstdlib>  // defines __GLIBC__, where it is

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace pagoda {

#ifdef __GLIBC__
void keep_large_blocks_apart() { mallopt(M_MMAP_THRESHOLD, 1 << 20); }
void give_free_heap_back() { malloc_trim(0); }
#else
void keep_large_blocks_apart() {}
void give_free_heap_back() {}
#endif

}  // namespace pagoda
