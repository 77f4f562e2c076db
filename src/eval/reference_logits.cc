#include "eval/reference_logits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/byte_size.h"

namespace pagoda::eval {

Result<std::unique_ptr<ReferenceLogits>> ReferenceLogits::create(const std::string& folder,
                                                                 std::uint64_t rows,
                                                                 std::uint32_t vocabulary) {
  const std::uint64_t bytes = rows * vocabulary * sizeof(float);
  const auto failed = [&](int error) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: no room for {} of logits: {}", folder,
                             format_byte_size(static_cast<double>(bytes)), std::strerror(error))};
  };
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::string path = folder + "/logits-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return failed(errno);
  ::unlink(path.c_str());
  // A write into a hole that the disk has no room for would end the process: room is taken now.
  const int error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* const data =
      error != 0 ? MAP_FAILED : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int mapping_error = errno;
  ::close(file);
  if (error != 0) return failed(error);
  if (data == MAP_FAILED) return failed(mapping_error);
  return std::unique_ptr<ReferenceLogits>(
      new ReferenceLogits(static_cast<float*>(data), rows, vocabulary));
}

ReferenceLogits::~ReferenceLogits() { ::munmap(data_, rows_ * vocabulary_ * sizeof(float)); }

}  // namespace pagoda::eval
