#include "gguf/file.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "gguf/file_storage.h"
#include "gguf/mapped_file.h"
#include "gguf/parser.h"
#include "gguf/printable.h"

namespace pagoda::gguf {
namespace {

constexpr std::uint64_t kSplitPartsMax = 65535;  // split.count is a u16

// A part's metadata about its split set.
struct SplitInfo {
  std::uint64_t index;  // split.no, from 0
  std::uint64_t count;  // split.count; 0 or 1 for a model in one file
};

Result<SplitInfo> split_info(const Metadata& metadata) {
  SplitInfo info{};
  ASSIGN_OR_RETURN(info.index, metadata.unsigned_value_or("split.no", 0));
  ASSIGN_OR_RETURN(info.count, metadata.unsigned_value_or("split.count", 1));
  if (info.count > kSplitPartsMax) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: split.count is {}, the limit is {}",
                                                  metadata.source(), info.count, kSplitPartsMax)};
  }
  if (info.index != 0 && info.index >= info.count) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: split.no is {}, expected less than split.count, which is {}",
                             metadata.source(), info.index, info.count)};
  }
  return info;
}

std::string part_suffix(SplitInfo info) {
  return fmt::format("-{:05}-of-{:05}.gguf", info.index + 1, info.count);
}

// Returns "models/big" for "models/big-00002-of-00003.gguf".
Result<std::string> split_prefix(const std::string& path, SplitInfo info) {
  const std::string suffix = part_suffix(info);
  if (!path.ends_with(suffix)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is part {} of {}, so its name must end in '{}' for the other "
                             "parts to be found",
                             path, info.index + 1, info.count, suffix)};
  }
  return path.substr(0, path.size() - suffix.size());
}

struct OpenPart {
  std::string path;
  std::unique_ptr<MappedFile> mapping;
  Part part;
  SplitInfo split;
};

Result<OpenPart> open_part(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> mapping, MappedFile::open(path));
  ASSIGN_OR_RETURN(Part part, parse_part(mapping->bytes(), path));
  ASSIGN_OR_RETURN(const SplitInfo split, split_info(part.metadata));
  return OpenPart{path, std::move(mapping), std::move(part), split};
}

// Opens all parts of the set in order; `opened` is one of them.
Result<std::vector<OpenPart>> open_set(OpenPart opened) {
  ASSIGN_OR_RETURN(const std::string prefix, split_prefix(opened.path, opened.split));
  const SplitInfo known = opened.split;
  std::optional<OpenPart> waiting = std::move(opened);
  std::vector<OpenPart> parts;
  for (std::uint64_t index = 0; index < known.count; ++index) {
    if (index == known.index) {
      parts.push_back(std::move(*waiting));
      continue;
    }
    const std::string part_path = prefix + part_suffix({index, known.count});
    ASSIGN_OR_RETURN(OpenPart part, open_part(part_path));
    if (part.split.index != index || part.split.count != known.count) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: says it is part {} of {}, expected part {} of {}", part_path,
                               part.split.index + 1, part.split.count, index + 1, known.count)};
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

File::File(std::string source) : metadata_(std::move(source)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

Result<File> File::open(const std::string& path) {
  ASSIGN_OR_RETURN(OpenPart opened, open_part(path));
  std::vector<OpenPart> parts;
  if (opened.split.count > 1) {
    ASSIGN_OR_RETURN(parts, open_set(std::move(opened)));
  } else {
    parts.push_back(std::move(opened));
  }
  File file(path);
  file.metadata_ = std::move(parts.front().part.metadata);
  file.version_ = parts.front().part.version;
  for (OpenPart& part : parts) {
    file.bytes_ += part.mapping->bytes().size();
    RETURN_IF_ERROR(file.add_tensors(part.part.tensors, part.path));
    file.parts_.push_back(std::move(part.mapping));
    file.part_paths_.push_back(part.path);
  }
  RETURN_IF_ERROR(file.check_tensor_count());
  return file;
}

Result<File> File::parse(std::span<const std::byte> bytes, const std::string& source) {
  ASSIGN_OR_RETURN(Part part, parse_part(bytes, source));
  ASSIGN_OR_RETURN(const SplitInfo split, split_info(part.metadata));
  if (split.count > 1) {
    return Error{ErrorCode::kUnsupported, fmt::format("{}: is part {} of {}, not a model alone",
                                                      source, split.index + 1, split.count)};
  }
  File file(source);
  file.metadata_ = std::move(part.metadata);
  file.version_ = part.version;
  file.bytes_ = bytes.size();
  RETURN_IF_ERROR(file.add_tensors(part.tensors, source));
  RETURN_IF_ERROR(file.check_tensor_count());
  return file;
}

std::vector<OpenedPart> File::opened_parts() const {
  std::vector<OpenedPart> opened;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    opened.push_back({part_paths_[i], parts_[i]->descriptor(), parts_[i]->state()});
  }
  return opened;
}

void File::release_pages() const {
  for (const std::unique_ptr<MappedFile>& part : parts_) part->release_pages();
}

const Tensor* File::find_tensor(std::string_view name) const {
  const auto found = tensor_by_name_.find(name);
  return found == tensor_by_name_.end() ? nullptr : &tensors_[found->second];
}

Status File::add_tensors(std::span<const Tensor> tensors, const std::string& source) {
  for (const Tensor& tensor : tensors) {
    if (!tensor_by_name_.emplace(tensor.name, tensors_.size()).second) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: tensor '{}' is also in an earlier part of the set", source,
                               printable(tensor.name, tensor.name.size()))};
    }
    tensors_.push_back(tensor);
  }
  return ok_status();
}

Status File::check_tensor_count() const {
  constexpr std::string_view kKey = "split.tensors.count";
  ASSIGN_OR_RETURN(const std::uint64_t expected,
                   metadata_.unsigned_value_or(kKey, tensors_.size()));
  if (expected == tensors_.size()) return ok_status();
  return Error{ErrorCode::kCorrupt, fmt::format("{}: {} is {}, but there are {} tensors", path(),
                                                kKey, expected, tensors_.size())};
}

}  // namespace pagoda::gguf
