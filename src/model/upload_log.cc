#include "model/upload_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "kernels/cuda/digest.h"

namespace pagoda::model {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // a multiple of a digest's word

std::uint64_t digest_of(std::span<const std::byte> bytes, ThreadPool* pool) {
  if (pool == nullptr) return kernels::cuda::digest(bytes);
  std::atomic<std::uint64_t> sum = 0;
  pool->run((bytes.size() + kPieceBytes - 1) / kPieceBytes, [&](WorkRange range) {
    const std::size_t begin = range.begin * kPieceBytes;
    const std::size_t end = std::min(range.end * kPieceBytes, bytes.size());
    sum += kernels::cuda::digest(bytes.subspan(begin, end - begin), begin / 8);
  });
  return sum;
}

}  // namespace

Status UploadLog::upload(device::Stream& stream, std::span<const std::byte> from, std::byte* to,
                         std::string what, ThreadPool* pool) {
  RETURN_IF_ERROR(stream.copy_to_device(to, from.data(), from.size()));
  entries_.push_back({to, from.size(), digest_of(from, pool), std::move(what)});
  return stream.wait();
}

Status UploadLog::record(device::Stream& stream, const std::byte* data, std::uint64_t bytes,
                         std::string what) {
  Entry entry = {data, bytes, 0, std::move(what)};
  ASSIGN_OR_RETURN(const auto found, digests_on_device(stream, {&entry, 1}));
  entry.digest = found.front();
  entries_.push_back(std::move(entry));
  return ok_status();
}

Result<std::vector<std::uint64_t>> UploadLog::digests_on_device(device::Stream& stream,
                                                                std::span<const Entry> entries) {
  std::vector<std::uint64_t> digests(entries.size());
  if (digests.empty()) return digests;
  ASSIGN_OR_RETURN(const device::Buffer sums,
                   device::Buffer::allocate(digests.size() * sizeof(std::uint64_t), "digests"));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    kernels::cuda::launch_digest(entries[i].data, entries[i].bytes, sums.as<std::uint64_t>() + i,
                                 stream.handle());
  }
  RETURN_IF_ERROR(device::last_launch_error());
  RETURN_IF_ERROR(
      stream.copy_to_host(reinterpret_cast<std::byte*>(digests.data()), sums.data(), sums.bytes()));
  RETURN_IF_ERROR(stream.wait());
  return digests;
}

Status UploadLog::check(device::Stream& stream) const {
  ASSIGN_OR_RETURN(const auto found, digests_on_device(stream, entries_));
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (found[i] == entries_[i].digest) continue;
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("GPU: {} ({} bytes) is not in device memory as it was uploaded: digest "
                    "{:016x}, expected {:016x}",
                    entries_[i].what, entries_[i].bytes, found[i], entries_[i].digest)};
  }
  return ok_status();
}

std::uint64_t UploadLog::digest() const {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    all += kernels::cuda::mix_word(entries_[i].digest, i);
  }
  return all;
}

}  // namespace pagoda::model
