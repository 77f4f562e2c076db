#include "hf/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "gguf/printable.h"
#include "hf/json_file.h"
#include "text/strict_json.h"

namespace pagoda::hf {
namespace {

constexpr std::uint64_t kPrefixBytes = sizeof(std::uint64_t);
// The bound of the format's own reader; the largest models need a few percent of it.
constexpr std::uint64_t kHeaderBytesMax = 100'000'000;
constexpr std::size_t kTensorNameBytesShown = 120;
constexpr std::uint64_t kElementsMax = std::numeric_limits<std::int64_t>::max();

struct DtypeRow {
  std::string_view name;
  std::uint64_t bytes;
  Dtype dtype = Dtype::kOther;
};
constexpr auto kDtypes = std::to_array<DtypeRow>({
    {"F32", 4, Dtype::kF32},
    {"F16", 2, Dtype::kF16},
    {"BF16", 2, Dtype::kBf16},
    {"F8_E4M3", 1, Dtype::kF8E4M3},
    {"U8", 1, Dtype::kU8},
    {"BOOL", 1},
    {"I8", 1},
    {"F8_E5M2", 1},
    {"F8_E8M0", 1},
    {"I16", 2},
    {"U16", 2},
    {"I32", 4},
    {"U32", 4},
    {"I64", 8},
    {"U64", 8},
    {"F64", 8},
});

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, const std::string& source)
      : file_(file), source_(source) {}

  Result<std::vector<SafeTensor>> read() {
    RETURN_IF_ERROR(find_header());
    ASSIGN_OR_RETURN(const JsonValue header, parse_header());
    std::vector<SafeTensor> tensors;
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") continue;
      ASSIGN_OR_RETURN(SafeTensor tensor, read_tensor(name, value));
      tensors.push_back(std::move(tensor));
    }
    RETURN_IF_ERROR(check_cover(tensors));
    return tensors;
  }

 private:
  Error corrupt(std::string_view what) const {
    return {ErrorCode::kCorrupt, fmt::format("{}: {}", source_, what)};
  }
  Error corrupt(std::string_view tensor, std::string_view what) const {
    return corrupt(
        fmt::format("tensor '{}' {}", gguf::printable(tensor, kTensorNameBytesShown), what));
  }

  Status find_header() {
    if (file_.size() < kPrefixBytes) {
      return corrupt(
          fmt::format("has {} bytes, a safetensors file begins with 8 bytes of header "
                      "length",
                      file_.size()));
    }
    std::memcpy(&header_bytes_, file_.data(), sizeof(header_bytes_));
    const std::uint64_t rest = file_.size() - kPrefixBytes;
    if (header_bytes_ > rest || header_bytes_ > kHeaderBytesMax) {
      return corrupt(fmt::format("the header length at offset 0 is {}, {}", header_bytes_,
                                 header_bytes_ > rest
                                     ? fmt::format("the file has {} bytes after it", rest)
                                     : fmt::format("the limit is {}", kHeaderBytesMax)));
    }
    data_ = file_.subspan(kPrefixBytes + header_bytes_);
    return ok_status();
  }

  Result<JsonValue> parse_header() const {
    const std::span<const std::byte> bytes = file_.subspan(kPrefixBytes, header_bytes_);
    Result<JsonValue> header =
        text::parse_strict_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!header.ok()) {
      return corrupt(fmt::format("the header at offset 8: {}", header.error().message));
    }
    if (!header.value().is_object()) return corrupt("the header at offset 8 is no JSON object");
    return header;
  }

  static const DtypeRow* find_dtype(std::string_view name) {
    const auto* const found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                           [&](const DtypeRow& row) { return row.name == name; });
    return found == kDtypes.end() ? nullptr : found;
  }

  Result<SafeTensor> read_tensor(const std::string& name, const JsonValue& value) const {
    if (name.empty()) return corrupt("a tensor has an empty name");
    if (!value.is_object()) return corrupt(name, "is described by no JSON object");
    SafeTensor tensor;
    tensor.name = name;
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) return corrupt(name, "has no dtype");
    tensor.dtype_name = dtype->get<std::string>();
    const DtypeRow* const row = find_dtype(tensor.dtype_name);
    if (row != nullptr) tensor.dtype = row->dtype;
    ASSIGN_OR_RETURN(tensor.shape, read_numbers(name, value, "shape"));
    ASSIGN_OR_RETURN(const std::uint64_t elements, count_elements(tensor));
    RETURN_IF_ERROR(place(value, tensor));
    if (row != nullptr &&
        (elements > kElementsMax / row->bytes || elements * row->bytes != tensor.bytes.size())) {
      return corrupt(name, fmt::format("has {} bytes at offset {} of the file, its shape {} of {} "
                                       "needs {}",
                                       tensor.bytes.size(), tensor.offset,
                                       shown(*value.find("shape")), tensor.dtype_name,
                                       elements > kElementsMax / row->bytes
                                           ? "more than 2^63 - 1"
                                           : fmt::format("{}", elements * row->bytes)));
    }
    return tensor;
  }

  Result<std::vector<std::uint64_t>> read_numbers(const std::string& name, const JsonValue& value,
                                                  const char* field) const {
    const auto list = value.find(field);
    if (list == value.end() || !list->is_array()) {
      return corrupt(name, fmt::format("has no list '{}'", field));
    }
    std::vector<std::uint64_t> numbers;
    for (const JsonValue& number : *list) {
      if (!number.is_number_unsigned()) {
        return corrupt(name, fmt::format("has {} {}, expected integers from 0 below 2^64", field,
                                         shown(*list)));
      }
      numbers.push_back(number.get<std::uint64_t>());
    }
    return numbers;
  }

  Result<std::uint64_t> count_elements(const SafeTensor& tensor) const {
    // An extent of 0 makes the others harmless, whatever they are.
    if (std::find(tensor.shape.begin(), tensor.shape.end(), 0U) != tensor.shape.end()) {
      return std::uint64_t{0};
    }
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : tensor.shape) {
      if (extent > kElementsMax / elements) {
        return corrupt(tensor.name, "has more than 2^63 - 1 elements");
      }
      elements *= extent;
    }
    return elements;
  }

  Status place(const JsonValue& value, SafeTensor& tensor) const {
    ASSIGN_OR_RETURN(const std::vector<std::uint64_t> offsets,
                     read_numbers(tensor.name, value, "data_offsets"));
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_.size()) {
      return corrupt(tensor.name,
                     fmt::format("has data_offsets {}, expected a begin and an end within the {} "
                                 "bytes of tensor data, which begin at offset {} of the file",
                                 shown(*value.find("data_offsets")), data_.size(),
                                 kPrefixBytes + header_bytes_));
    }
    tensor.bytes = data_.subspan(offsets[0], offsets[1] - offsets[0]);
    tensor.offset = kPrefixBytes + header_bytes_ + offsets[0];
    return ok_status();
  }

  // Sorts the tensors by their place and checks that they follow each other.
  Status check_cover(std::vector<SafeTensor>& tensors) const {
    std::sort(tensors.begin(), tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.bytes.size() < b.bytes.size();
    });
    std::uint64_t end = kPrefixBytes + header_bytes_;
    for (const SafeTensor& tensor : tensors) {
      if (tensor.offset != end) {
        return corrupt(
            tensor.name,
            fmt::format("begins at offset {} of the file, {} {}", tensor.offset,
                        tensor.offset < end ? "inside the tensor before it, which ends at"
                                            : "after a hole that begins at",
                        end));
      }
      end += tensor.bytes.size();
    }
    if (end == file_.size()) return ok_status();
    return corrupt(fmt::format("tensor data ends at offset {}, the file at {}", end, file_.size()));
  }

  std::span<const std::byte> file_;
  const std::string& source_;
  std::uint64_t header_bytes_ = 0;
  std::span<const std::byte> data_;
};

}  // namespace

std::uint64_t SafeTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

Result<std::vector<SafeTensor>> parse_safetensors(std::span<const std::byte> file,
                                                  const std::string& source) {
  return HeaderReader(file, source).read();
}

}  // namespace pagoda::hf
