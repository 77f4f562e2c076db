#include "store/disk/other_slabs.h"

#include <fmt/format.h>

#include <utility>

#include "store/disk/slab.h"

namespace pagoda::store {
namespace {

Result<ReadHeader> header_of(FileLayer& layer, const SlotGeometry& geometry) {
  const std::string name = geometry.file_stem() + std::string(kIndexSuffix);
  const OpenedFile index = layer.open(name, OpenMode::kReadOnly);
  std::array<std::byte, 64> bytes = {};
  const int error = index.file ? read_all(*index.file, 0, bytes).error : index.error;
  if (error == 0) return decode_header(bytes);
  return Error{ErrorCode::kIo, fmt::format("{}/{}: {}", layer.path(), name, error_text(error))};
}

SlotCodec codec_of(const SlotGeometry& geometry, Cipher cipher) {
  std::optional<SlotCipher> any_key;
  if (cipher != Cipher::kNone) any_key.emplace(SecretKey{});
  return {geometry, any_key};
}

Result<kv::Removal> remove_from(FileLayer& layer, const SlotGeometry& geometry,
                                const std::optional<kv::OwnerTag>& owner) {
  ASSIGN_OR_RETURN(const ReadHeader found, header_of(layer, geometry));
  if (found.state == HeaderState::kDamaged) {
    return Error{ErrorCode::kCorrupt,
                 "its index's header is damaged; a start with its model mends it"};
  }
  const SlotCodec codec = codec_of(geometry, found.header.cipher);
  ASSIGN_OR_RETURN(SlabFiles files, SlabFiles::open_to_remove(layer, codec));
  Slab slab(std::move(files), codec, wall_clock_us);
  if (const int error = slab.load([] {}); error != 0) {
    return Error{ErrorCode::kIo, fmt::format("its index cannot be read: {}", error_text(error))};
  }
  ASSIGN_OR_RETURN(const kv::Removal removal, slab.remove(owner));
  slab.close();
  return removal;
}

}  // namespace

Result<SlotCodec> codec_without_key(FileLayer& layer, const SlotGeometry& geometry) {
  ASSIGN_OR_RETURN(const ReadHeader found, header_of(layer, geometry));
  return codec_of(geometry, found.header.cipher);
}

Result<kv::Removal> remove_from_others(FileLayer& layer, const SlotGeometry& ours,
                                       const std::optional<kv::OwnerTag>& owner) {
  kv::Removal all = {.overwritten = true};
  std::optional<Error> failed;
  for (const FileSize& file : layer.list()) {
    const auto geometry = geometry_of(file.name, kSlabSuffix);
    if (!geometry || *geometry == ours) continue;
    const Result<kv::Removal> removed = remove_from(layer, *geometry, owner);
    if (!removed.ok()) {
      failed = Error{removed.error().code,
                     fmt::format("{}/{}: {}", layer.path(), file.name, removed.error().message)};
      continue;
    }
    all.pages += removed.value().pages;
    all.bytes += removed.value().bytes;
    all.overwritten = all.overwritten && removed.value().overwritten;
  }
  if (failed) return *failed;
  return all;
}

}  // namespace pagoda::store
