// Makes a slab smaller. Its last slots go; the pages in them that were used later than pages before
// them move there first, so that what is lost is what was used longest ago.
#pragma once

#include <cstddef>

#include "store/disk/file_layer.h"
#include "store/disk/format.h"

namespace pagoda::store {

// Leaves a slab and its index with `slots` slots; 0, or an error of the system. A crash on the way
// loses pages and makes none wrong: a moved page's record is written once its bytes are durable.
int shrink_slab(DiskFile& slab, DiskFile& index, const SlotGeometry& geometry, Cipher cipher,
                std::size_t slots);

}  // namespace pagoda::store
