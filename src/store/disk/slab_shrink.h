// Makes a slab smaller. Its last slots go; pages in them that were used later than pages before
// them move first, so that the least recently used pages are lost.
#pragma once

#include <cstddef>

#include "store/disk/file_layer.h"
#include "store/disk/format.h"

namespace pagoda::store {

// Leaves a slab and its index with `slots` slots; returns 0, or an error of the system. A crash on
// the way loses pages and makes none wrong: a moved page's record is written once its bytes are
// durable.
int shrink_slab(DiskFile& slab, DiskFile& index, const SlotGeometry& geometry, Cipher cipher,
                std::size_t slots);

}  // namespace pagoda::store
