// Controls how much freed memory the program's heap keeps. Where the allocator cannot be told, both
// functions do nothing.
#pragma once

namespace pagoda {

// Call once, at start: blocks of a megabyte and more are then mapped by themselves and go back to
// the system when freed. (By default glibc raises this threshold to the largest block freed so far,
// up to 32 MiB.)
void mmap_large_blocks();

// Gives free memory back to the system, wherever in the heap it lies. The call takes time in
// proportion to the heap.
void trim_heap();

}  // namespace pagoda
