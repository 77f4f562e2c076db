#include "gguf/file_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/assert.h"

namespace pagoda::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

constexpr auto kContainerKeys = std::to_array<std::string_view>(
    {"general.alignment", "split.no", "split.count", "split.tensors.count"});

bool is_of_container(std::string_view key) {
  return std::find(kContainerKeys.begin(), kContainerKeys.end(), key) != kContainerKeys.end();
}

std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + kWrittenAlignment - 1) / kWrittenAlignment * kWrittenAlignment;
}

template <class Number>
void append_number(std::string& to, Number value) {
  std::array<char, sizeof(Number)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(value));
  to.append(bytes.data(), bytes.size());
}

void append_text(std::string& to, std::string_view text) {
  append_number<std::uint64_t>(to, text.size());
  to += text;
}

void append_float(std::string& to, ValueType type, double value) {
  if (type == ValueType::kF32) {
    append_number(to, static_cast<float>(value));
  } else {
    append_number(to, value);
  }
}

// Integers of 1 to 8 bytes: the low bytes of the 8 that hold the value.
template <class Number>
void append_integer(std::string& to, ValueType type, Number value) {
  std::string all;
  append_number(all, value);
  to.append(all, 0, scalar_bytes(type));
}

struct ValueAppender {
  std::string& to;
  ValueType type;

  void operator()(std::uint64_t value) const { append_integer(to, type, value); }
  void operator()(std::int64_t value) const { append_integer(to, type, value); }
  void operator()(double value) const { append_float(to, type, value); }
  void operator()(bool value) const { append_number<std::uint8_t>(to, value ? 1 : 0); }
  void operator()(std::string_view value) const { append_text(to, value); }
  void operator()(const Array& array) const {
    append_number(to, static_cast<std::uint32_t>(array.element_type));
    append_number(to, array.count);
    to.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  }
};

}  // namespace

std::uint64_t tensor_bytes(const Tensor& tensor) {
  const TensorTypeInfo& type = tensor_type_info(tensor.type);
  return tensor.elements() / type.block_elements * type.block_bytes;
}

std::string file_head(const Metadata& keys, std::span<const Tensor> tensors) {
  std::string entries;
  std::uint64_t count = 0;
  for (const auto& [key, value] : keys.entries()) {
    if (is_of_container(key)) continue;
    append_text(entries, key);
    append_number(entries, static_cast<std::uint32_t>(value.type));
    std::visit(ValueAppender{entries, value.type}, value.data);
    ++count;
  }
  std::string head = "GGUF";
  append_number<std::uint32_t>(head, 3);
  append_number<std::uint64_t>(head, tensors.size());
  append_number<std::uint64_t>(head, count);
  head += entries;
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    append_text(head, tensor.name);
    append_number(head, tensor.dimensions);
    for (std::uint32_t i = 0; i < tensor.dimensions; ++i) append_number(head, tensor.extents[i]);
    append_number(head, static_cast<std::uint32_t>(tensor.type));
    append_number(head, offset);
    offset = padded(offset + tensor_bytes(tensor));
  }
  head.resize(padded(head.size()), '\0');
  return head;
}

std::uint64_t file_bytes(const std::string& head, std::span<const Tensor> tensors) {
  std::uint64_t bytes = head.size();
  for (const Tensor& tensor : tensors) bytes += padded(tensor_bytes(tensor));
  return bytes;
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  const std::string temporary = path + kTemporaryEnd;
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  FileWriter writer(path, descriptor);
  if (descriptor < 0) return writer.failed("make", errno);
  return writer;
}

FileWriter::FileWriter(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      hash_(std::move(other.hash_)) {}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink((path_ + kTemporaryEnd).c_str());
}

Error FileWriter::failed(std::string_view action, int code) const {
  return {ErrorCode::kIo, fmt::format("{}{}: cannot {}: {}", path_, kTemporaryEnd, action,
                                      std::generic_category().message(code))};
}

Status FileWriter::append(std::span<const std::byte> bytes) {
  ASSERT(descriptor_ >= 0, "a file is written before it is committed");
  hash_.add(bytes);
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return ok_status();
}

Status FileWriter::pad() {
  constexpr std::array<std::byte, kWrittenAlignment> kZeros = {};
  return append(std::span(kZeros).first(padded(bytes_) - bytes_));
}

Result<std::string> FileWriter::commit() {
  ASSERT(descriptor_ >= 0, "a file is committed once");
  if (::fsync(descriptor_) != 0) return failed("write to disk", errno);
  const std::string temporary = path_ + kTemporaryEnd;
  if (::rename(temporary.c_str(), path_.c_str()) != 0) return failed("rename", errno);
  ::close(std::exchange(descriptor_, -1));
  // The name is on disk once its folder is; a power failure before that only loses the file.
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (opened >= 0) {
    static_cast<void>(::fsync(opened));
    ::close(opened);
  }
  return hash_.finish();
}

}  // namespace pagoda::gguf
