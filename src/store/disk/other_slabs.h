// Other slabs of a folder are those not in use: of other page sizes, another model or KV format.
// Sums cover encrypted bytes and owners stand beside them, so that no key is needed.
#pragma once

#include <optional>

#include "base/result.h"
#include "store/disk/file_layer.h"
#include "store/disk/format.h"
#include "store/disk/slot_codec.h"

namespace pagoda::store {

// Makes a codec that can check the slab's slots and read its records, and open no page.
Result<SlotCodec> codec_without_key(FileLayer& layer, const SlotGeometry& geometry);

// Removes an owner's pages, or all, from every slab but that of `ours`, durably. An error names the
// slab in which pages may be left; the pages of other slabs are removed.
Result<kv::Removal> remove_from_others(FileLayer& layer, const SlotGeometry& ours,
                                       const std::optional<kv::OwnerTag>& owner);

}  // namespace pagoda::store
