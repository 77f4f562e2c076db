// What the program's heap keeps of memory that was freed. On systems whose allocator cannot be
// told, both do nothing.
#pragma once

namespace pagoda {

// Once, at start: blocks of a megabyte and more are the system's own, and go back when freed. (By
// default glibc raises that size to the largest block freed so far, up to 32 MiB.)
void mmap_large_blocks();

// Gives back what is free, wherever in the heap it lies. Takes time in proportion to the heap.
void trim_heap();

}  // namespace pagoda
