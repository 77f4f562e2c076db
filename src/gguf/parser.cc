#include "gguf/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "gguf/byte_reader.h"
#include "gguf/printable.h"

namespace pagoda::gguf {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kKeyBytesMax = 65535;
constexpr std::uint64_t kTextBytesMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kArrayCountMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kNameBytesMax = 63;  // llama.cpp's GGML_MAX_NAME less its final NUL
constexpr std::uint32_t kDimensionsMax = 4;
constexpr std::uint64_t kAlignmentDefault = 32;
constexpr std::uint64_t kAlignmentMin = 8;  // so that every element type is aligned in a mapping
constexpr std::size_t kQuotedBytesMax = 80;

// The smallest possible key: length, one character, type, one byte of value.
constexpr std::uint64_t kKeyEntryBytesMin = 8 + 1 + 4 + 1;
// The smallest possible tensor info: length, one character, dimensions, one extent, type, offset.
constexpr std::uint64_t kTensorInfoBytesMin = 8 + 1 + 4 + 8 + 4 + 8;

struct Prelude {
  std::uint32_t version;
  std::uint64_t tensors;
  std::uint64_t keys;
};

struct TensorInfo {
  Tensor tensor;            // its bytes are not set yet
  std::uint64_t offset;     // from the start of tensor data
  std::uint64_t size;       // in bytes
  std::uint64_t header_at;  // offset of this info in the file, for messages
};

std::string quoted(std::string_view text) {
  return fmt::format("'{}'", printable(text, kQuotedBytesMax));
}

Result<std::uint64_t> read_count(ByteReader& reader, std::string_view what) {
  const std::uint64_t at = reader.offset();
  ASSIGN_OR_RETURN(const std::int64_t count, reader.number<std::int64_t>(what));
  if (count < 0) return reader.corrupt(at, fmt::format("{} is {}, below 0", what, count));
  return static_cast<std::uint64_t>(count);
}

Result<Prelude> read_prelude(ByteReader& reader) {
  ASSIGN_OR_RETURN(const auto magic, reader.take(kMagic.size(), "the magic number"));
  const std::string_view found(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (found != kMagic) {
    return reader.corrupt(
        0, fmt::format("not a GGUF file: it starts with {}, not with 'GGUF'", quoted(found)));
  }
  Prelude prelude{};
  ASSIGN_OR_RETURN(prelude.version, reader.number<std::uint32_t>("the version"));
  if ((prelude.version & 0xFFFFu) == 0) {
    return reader.unsupported(4, "the file is big-endian, only little-endian files can be read");
  }
  if (prelude.version != 2 && prelude.version != 3) {
    return reader.unsupported(
        4, fmt::format("GGUF version {} is not supported, only 2 and 3", prelude.version));
  }
  ASSIGN_OR_RETURN(prelude.tensors, read_count(reader, "the tensor count"));
  ASSIGN_OR_RETURN(prelude.keys, read_count(reader, "the key count"));
  RETURN_IF_ERROR(reader.check_count(prelude.tensors, kTensorInfoBytesMin, 8, "the tensor count"));
  RETURN_IF_ERROR(reader.check_count(prelude.keys, kKeyEntryBytesMin, 16, "the key count"));
  return prelude;
}

Result<ValueType> read_value_type(ByteReader& reader, std::string_view key) {
  const std::uint64_t at = reader.offset();
  ASSIGN_OR_RETURN(const std::uint32_t id, reader.number<std::uint32_t>("a value type"));
  if (id > static_cast<std::uint32_t>(ValueType::kF64)) {
    return reader.corrupt(
        at, fmt::format("key {} has value type {}, known are 0 to 12", quoted(key), id));
  }
  return static_cast<ValueType>(id);
}

Status check_flags(const ByteReader& reader, std::span<const std::byte> flags, std::uint64_t at,
                   std::string_view key) {
  const auto bad = std::find_if(flags.begin(), flags.end(),
                                [](std::byte flag) { return std::to_integer<int>(flag) > 1; });
  if (bad == flags.end()) return ok_status();
  return reader.corrupt(at + static_cast<std::uint64_t>(bad - flags.begin()),
                        fmt::format("key {} holds {} where a bool is 0 or 1", quoted(key),
                                    std::to_integer<int>(*bad)));
}

Result<Array> read_array(ByteReader& reader, std::string_view key) {
  const std::uint64_t type_at = reader.offset();
  ASSIGN_OR_RETURN(const ValueType type, read_value_type(reader, key));
  if (type == ValueType::kArray) {
    return reader.corrupt(type_at, fmt::format("key {} is an array of arrays", quoted(key)));
  }
  const std::uint64_t count_at = reader.offset();
  ASSIGN_OR_RETURN(const std::uint64_t count, reader.number<std::uint64_t>("an array's length"));
  const std::string what = fmt::format("the array length of key {}", quoted(key));
  if (count > kArrayCountMax) {
    return reader.corrupt(count_at,
                          fmt::format("{} is {}, the limit is {}", what, count, kArrayCountMax));
  }
  const std::uint64_t item_bytes = type == ValueType::kString ? 8 : scalar_bytes(type);
  RETURN_IF_ERROR(reader.check_count(count, item_bytes, count_at, what));
  const std::uint64_t start = reader.offset();
  if (type == ValueType::kString) {
    for (std::uint64_t index = 0; index < count; ++index) {
      RETURN_IF_ERROR(reader.text(kTextBytesMax, "a text in an array"));
    }
  } else {
    RETURN_IF_ERROR(reader.take(count * item_bytes, "an array"));
  }
  const Array array{type, count, reader.since(start)};
  if (type == ValueType::kBool) RETURN_IF_ERROR(check_flags(reader, array.bytes, start, key));
  return array;
}

Result<MetadataValue> read_value(ByteReader& reader, std::string_view key) {
  ASSIGN_OR_RETURN(const ValueType type, read_value_type(reader, key));
  if (type == ValueType::kArray) {
    ASSIGN_OR_RETURN(const Array array, read_array(reader, key));
    return MetadataValue{type, array};
  }
  if (type == ValueType::kString) {
    ASSIGN_OR_RETURN(const std::string_view text, reader.text(kTextBytesMax, "a text value"));
    return MetadataValue{type, text};
  }
  const std::uint64_t at = reader.offset();
  ASSIGN_OR_RETURN(const auto bytes, reader.take(scalar_bytes(type), "a value"));
  if (type == ValueType::kBool) RETURN_IF_ERROR(check_flags(reader, bytes, at, key));
  return load_scalar(type, bytes.data());
}

Status read_metadata(ByteReader& reader, std::uint64_t keys, Metadata& metadata) {
  for (std::uint64_t index = 0; index < keys; ++index) {
    const std::uint64_t at = reader.offset();
    ASSIGN_OR_RETURN(const std::string_view key, reader.text(kKeyBytesMax, "a key"));
    if (key.empty()) return reader.corrupt(at, fmt::format("key {} of {} is empty", index, keys));
    ASSIGN_OR_RETURN(const MetadataValue value, read_value(reader, key));
    if (!metadata.insert(key, value)) {
      return reader.corrupt(at, fmt::format("key {} is there twice", quoted(key)));
    }
  }
  return ok_status();
}

Result<std::uint64_t> alignment_of(const Metadata& metadata) {
  ASSIGN_OR_RETURN(const std::uint64_t alignment,
                   metadata.unsigned_value_or("general.alignment", kAlignmentDefault));
  if (!std::has_single_bit(alignment) || alignment < kAlignmentMin ||
      alignment > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: general.alignment is {}, expected a power of two from {} to 2^31",
                             metadata.source(), alignment, kAlignmentMin)};
  }
  return alignment;
}

Status read_extents(ByteReader& reader, Tensor& tensor) {
  const std::uint64_t at = reader.offset();
  ASSIGN_OR_RETURN(tensor.dimensions, reader.number<std::uint32_t>("a tensor's dimensions"));
  if (tensor.dimensions < 1 || tensor.dimensions > kDimensionsMax) {
    return reader.corrupt(at, fmt::format("tensor {} has {} dimensions, expected 1 to {}",
                                          quoted(tensor.name), tensor.dimensions, kDimensionsMax));
  }
  constexpr std::uint64_t kElementsMax = std::numeric_limits<std::int64_t>::max();
  std::uint64_t elements = 1;
  for (std::uint32_t index = 0; index < tensor.dimensions; ++index) {
    const std::uint64_t extent_at = reader.offset();
    ASSIGN_OR_RETURN(const std::int64_t extent, reader.number<std::int64_t>("a tensor's extent"));
    if (extent < 1) {
      return reader.corrupt(extent_at, fmt::format("tensor {} has extent {} in dimension {}, "
                                                   "expected 1 or more",
                                                   quoted(tensor.name), extent, index));
    }
    tensor.extents[index] = static_cast<std::uint64_t>(extent);
    if (tensor.extents[index] > kElementsMax / elements) {
      return reader.corrupt(
          extent_at, fmt::format("tensor {} has more than 2^63 - 1 elements", quoted(tensor.name)));
    }
    elements *= tensor.extents[index];
  }
  return ok_status();
}

Result<std::uint64_t> size_of(const ByteReader& reader, const Tensor& tensor, std::uint64_t at) {
  const TensorTypeInfo& type = tensor_type_info(tensor.type);
  if (tensor.extents[0] % type.block_elements != 0) {
    return reader.corrupt(
        at, fmt::format("tensor {} has rows of {} elements, {} needs a multiple "
                        "of {}",
                        quoted(tensor.name), tensor.extents[0], type.name, type.block_elements));
  }
  const std::uint64_t blocks = tensor.elements() / type.block_elements;
  if (blocks > std::numeric_limits<std::uint64_t>::max() / type.block_bytes) {
    return reader.corrupt(
        at, fmt::format("tensor {} has more than 2^64 - 1 bytes", quoted(tensor.name)));
  }
  return blocks * type.block_bytes;
}

Result<TensorInfo> read_tensor_info(ByteReader& reader) {
  TensorInfo info{};
  info.header_at = reader.offset();
  Tensor& tensor = info.tensor;
  tensor.extents = {1, 1, 1, 1};
  ASSIGN_OR_RETURN(tensor.name, reader.text(kNameBytesMax, "a tensor's name"));
  if (tensor.name.empty()) return reader.corrupt(info.header_at, "a tensor's name is empty");
  RETURN_IF_ERROR(read_extents(reader, tensor));
  const std::uint64_t type_at = reader.offset();
  ASSIGN_OR_RETURN(const std::uint32_t id, reader.number<std::uint32_t>("a tensor's type"));
  const std::optional<TensorTypeInfo> type = find_tensor_type(id);
  if (!type) {
    return reader.unsupported(type_at, fmt::format("tensor {} has type {}, which is unknown or "
                                                   "retired",
                                                   quoted(tensor.name), id));
  }
  tensor.type = type->type;
  ASSIGN_OR_RETURN(info.size, size_of(reader, tensor, info.header_at));
  ASSIGN_OR_RETURN(info.offset, reader.number<std::uint64_t>("a tensor's offset"));
  return info;
}

// Gives every tensor its bytes. `data` runs from the start of tensor data to the end of the file.
Status place_tensors(const ByteReader& reader, std::span<const std::byte> data,
                     std::uint64_t alignment, std::vector<TensorInfo>& infos) {
  for (TensorInfo& info : infos) {
    if (info.offset % alignment != 0) {
      return reader.corrupt(info.header_at,
                            fmt::format("tensor {} has offset {}, not a multiple of the alignment "
                                        "{}",
                                        quoted(info.tensor.name), info.offset, alignment));
    }
    if (info.offset > data.size() || info.size > data.size() - info.offset) {
      return reader.corrupt(
          info.header_at,
          fmt::format("tensor {} needs {} bytes at offset {} of the tensor data, "
                      "which has {}",
                      quoted(info.tensor.name), info.size, info.offset, data.size()));
    }
    info.tensor.bytes = data.subspan(info.offset, info.size);
  }
  std::vector<const TensorInfo*> by_offset(infos.size());
  std::transform(infos.begin(), infos.end(), by_offset.begin(),
                 [](const TensorInfo& info) { return &info; });
  std::sort(by_offset.begin(), by_offset.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
  for (std::size_t index = 1; index < by_offset.size(); ++index) {
    const TensorInfo& before = *by_offset[index - 1];
    const TensorInfo& after = *by_offset[index];
    if (after.offset - before.offset >= before.size) continue;
    return reader.corrupt(after.header_at,
                          fmt::format("tensor {} at offset {} of the tensor data overlaps tensor "
                                      "{}, which ends at {}",
                                      quoted(after.tensor.name), after.offset,
                                      quoted(before.tensor.name), before.offset + before.size));
  }
  return ok_status();
}

Result<std::vector<TensorInfo>> read_tensor_infos(ByteReader& reader, std::uint64_t count) {
  RETURN_IF_ERROR(reader.check_count(count, kTensorInfoBytesMin, 8, "the tensor count"));
  std::vector<TensorInfo> infos;
  infos.reserve(count);
  std::unordered_set<std::string_view> names;
  for (std::uint64_t index = 0; index < count; ++index) {
    ASSIGN_OR_RETURN(const TensorInfo info, read_tensor_info(reader));
    if (!names.insert(info.tensor.name).second) {
      return reader.corrupt(info.header_at,
                            fmt::format("tensor {} is there twice", quoted(info.tensor.name)));
    }
    infos.push_back(info);
  }
  return infos;
}

}  // namespace

Result<Part> parse_part(std::span<const std::byte> bytes, const std::string& source) {
  ByteReader reader(bytes, source);
  ASSIGN_OR_RETURN(const Prelude prelude, read_prelude(reader));
  Part part{prelude.version, Metadata(source), {}};
  RETURN_IF_ERROR(read_metadata(reader, prelude.keys, part.metadata));
  ASSIGN_OR_RETURN(const std::uint64_t alignment, alignment_of(part.metadata));
  ASSIGN_OR_RETURN(std::vector<TensorInfo> infos, read_tensor_infos(reader, prelude.tensors));

  // This cannot overflow: the offset is at most half the address space, alignment 2^31.
  const std::uint64_t data_start = (reader.offset() + alignment - 1) / alignment * alignment;
  const auto data = data_start < bytes.size() ? bytes.subspan(data_start) : bytes.last(0);
  RETURN_IF_ERROR(place_tensors(reader, data, alignment, infos));
  part.tensors.reserve(infos.size());
  for (const TensorInfo& info : infos) part.tensors.push_back(info.tensor);
  return part;
}

}  // namespace pagoda::gguf
