#include "store/disk/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "store/disk/aligned_bytes.h"
#include "store/disk/other_slabs.h"
#include "store/disk/posix_files.h"
#include "store/disk/slab_files.h"

namespace pagoda::store {
namespace {

void count_pages(const SlotIndex& index, SlabSurvey& slab) {
  slab.slots = index.slots_max();
  slab.pages = index.slots_used();
  for (std::size_t i = 0; i < index.slots_max(); ++i) {
    const auto slot = static_cast<SlotNumber>(i);
    if (!index.is_used(slot)) continue;
    const SlotRecord& record = index.record(slot);
    ++slab.pages_by_space[record.space];
    ++slab.pages_by_owner[record.owner];
    slab.newest_use_us = std::max(slab.newest_use_us, record.used_us);
    const bool is_first = slab.oldest_use_us == 0;
    slab.oldest_use_us = is_first ? record.used_us : std::min(slab.oldest_use_us, record.used_us);
  }
}

// False: the caller told it to stop.
bool verify_pages(const SlabFiles& files, const SlotCodec& codec, const SlotIndex& index,
                  const SurveyOptions& options, SlabSurvey& slab) {
  const AlignedBytes bytes(codec.geometry().slot_bytes());
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < index.slots_max(); ++i) {
    const auto slot = static_cast<SlotNumber>(i);
    if (!index.is_used(slot)) continue;
    if (options.go_on && !options.go_on(done++, slab.pages)) return false;
    if (files.read_slot(slot, bytes.span()).error != 0) {
      ++slab.pages_unread;
      continue;
    }
    switch (codec.check(bytes.span(), index.record(slot).sum)) {
      case kv::StoreFault::kNone:
        ++slab.pages_whole;
        break;
      case kv::StoreFault::kAbsent:
        ++slab.pages_stale;
        break;
      default:
        ++slab.pages_damaged;
        break;
    }
  }
  return true;
}

Result<SlabSurvey> survey_slab(FileLayer& layer, const SlotGeometry& geometry,
                               const SurveyOptions& options) {
  SlabSurvey slab;
  slab.geometry = geometry;
  ASSIGN_OR_RETURN(const SlotCodec codec, codec_without_key(layer, geometry));
  slab.cipher = codec.cipher();
  ASSIGN_OR_RETURN(SlabFiles files, SlabFiles::open_read_only(layer, codec, true));
  slab.was_closed = files.was_closed();
  SlotIndex index(files.slots_max());
  if (const int error = files.load(index, [] {}); error != 0) {
    return Error{ErrorCode::kIo, fmt::format("{}: the index of {} cannot be read: {}", layer.path(),
                                             geometry.file_stem(), error_text(error))};
  }
  count_pages(index, slab);
  if (options.verify && !verify_pages(files, codec, index, options, slab)) {
    return Error{ErrorCode::kExhausted, "interrupted"};
  }
  return slab;
}

}  // namespace

Result<StoreSurvey> survey_store(const SurveyOptions& options) {
  if (!std::filesystem::is_directory(options.path)) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: no such folder", options.path)};
  }
  PosixFiles layer(options.path);
  StoreSurvey survey;
  survey.is_in_use = layer.lock(true) == EWOULDBLOCK;
  if (survey.is_in_use && options.verify) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{}: another process uses this store and changes it meanwhile; stop "
                             "it first, or inspect it without verification",
                             options.path)};
  }
  const std::vector<FileSize> files = layer.list();
  for (const FileSize& file : files) {
    const auto geometry = geometry_of(file.name, kSlabSuffix);
    if (!geometry) continue;
    ASSIGN_OR_RETURN(SlabSurvey slab, survey_slab(layer, *geometry, options));
    for (const FileSize& part : files) {
      if (part.name.starts_with(geometry->file_stem() + ".")) {
        slab.bytes_on_disk += part.bytes_on_disk;
      }
    }
    survey.slabs.push_back(std::move(slab));
  }
  survey.spaces = read_space_names(options.path);
  if (survey.slabs.empty()) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: holds no slabs of pages", options.path)};
  }
  return survey;
}

}  // namespace pagoda::store
