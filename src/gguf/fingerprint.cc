#include "gguf/fingerprint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "gguf/sha256.h"

namespace pagoda::gguf {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kRemembered = 64;  // sets of files
constexpr int kConfirmTries = 8;         // readings of files whose change times move meanwhile

Error changed(const OpenedPart& part) {
  return {ErrorCode::kCorrupt, fmt::format("{}: changed after it was opened", part.path)};
}

Status check_unchanged(std::span<const OpenedPart> parts, const FingerprintOptions& options) {
  for (const OpenedPart& part : parts) {
    ASSIGN_OR_RETURN(const FileState state, options.state_of(part));
    if (state != part.state) {
      return changed(part);
    }
  }
  return ok_status();
}

// Returns the parts with their states of now, where only change times have moved.
Result<std::vector<OpenedPart>> parts_now(std::span<const OpenedPart> parts,
                                          const FingerprintOptions& options) {
  std::vector<OpenedPart> now(parts.begin(), parts.end());
  for (OpenedPart& part : now) {
    ASSIGN_OR_RETURN(const FileState state, options.state_of(part));
    if (!state.differs_in_change_time_alone(part.state)) return changed(part);
    part.state = state;
  }
  return now;
}

// Returns the parts' states as the memory file has them.
std::string states_text(std::span<const OpenedPart> parts) {
  std::string text = "v2";
  for (const auto& [path, descriptor, state] : parts) {
    text += fmt::format(" {}:{}:{}:{}:{}", state.device, state.inode, state.bytes,
                        state.modified_ns, state.changed_ns);
  }
  return text;
}

bool tell_changes(std::span<const OpenedPart> parts, const FingerprintOptions& options) {
  const std::int64_t now_ns = options.now_ns
                                  ? options.now_ns()
                                  : std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count();
  return std::all_of(parts.begin(), parts.end(),
                     [&](const OpenedPart& part) { return tells_changes(part.state, now_ns); });
}

Status add_part(const OpenedPart& part, Sha256& hash, const std::atomic<bool>& stop) {
  std::vector<char> chunk(kChunkBytes);
  for (off_t offset = 0;;) {
    if (stop) return Error{ErrorCode::kExhausted, "stopped"};
    const ssize_t count = pread(part.descriptor, chunk.data(), chunk.size(), offset);
    if (count == 0) return ok_status();
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return Error{ErrorCode::kIo,
                   fmt::format("{}: {}", part.path, std::generic_category().message(errno))};
    }
    hash.add(std::as_bytes(std::span(chunk).first(static_cast<std::size_t>(count))));
    offset += count;
  }
}

// Hashes all bytes of the parts; an error when one changed since its state was taken.
Result<std::string> digest_of(std::span<const OpenedPart> parts, const FingerprintOptions& options,
                              const std::atomic<bool>& stop) {
  RETURN_IF_ERROR(check_unchanged(parts, options));
  Sha256 hash;
  for (const OpenedPart& part : parts) RETURN_IF_ERROR(add_part(part, hash, stop));
  RETURN_IF_ERROR(check_unchanged(parts, options));
  return hash.finish();
}

// A line has the digest, a space and the states.
constexpr std::size_t kDigestDigits = 64;

std::vector<std::string> remembered_lines(const std::string& memory_path) {
  std::vector<std::string> lines;
  std::ifstream file(memory_path);
  for (std::string line; lines.size() < kRemembered && std::getline(file, line);) {
    if (line.size() > kDigestDigits && line[kDigestDigits] == ' ') lines.push_back(line);
  }
  return lines;
}

bool is_of(const std::string& line, const std::string& states) {
  return line.compare(kDigestDigits + 1, std::string::npos, states) == 0;
}

// Writes the newest entry first; without a digest the entry of these states is removed. An error of
// writing only means that nothing is remembered.
void remember(const std::string& memory_path, const std::string& states,
              const std::string& digest) {
  std::vector<std::string> lines = remembered_lines(memory_path);
  const std::size_t before = lines.size();
  std::erase_if(lines, [&](const std::string& line) { return is_of(line, states); });
  if (digest.empty() && lines.size() == before) return;
  if (!digest.empty()) lines.insert(lines.begin(), digest + " " + states);
  if (lines.size() > kRemembered) lines.resize(kRemembered);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(memory_path).parent_path(), ignored);
  const std::string fresh = fmt::format("{}.{}", memory_path, getpid());
  {
    std::ofstream file(fresh, std::ios::trunc);
    for (const std::string& line : lines) file << line << '\n';
    if (!file.flush()) return;
  }
  std::filesystem::rename(fresh, memory_path, ignored);
}

}  // namespace

Result<Fingerprint> fingerprint(std::span<const OpenedPart> parts,
                                const FingerprintOptions& options, const std::atomic<bool>& stop) {
  RETURN_IF_ERROR(check_unchanged(parts, options));
  // Decided before the bytes are read: any later write changes a state.
  const bool can_be_remembered = !options.memory_path.empty() && tell_changes(parts, options);
  const std::string states = states_text(parts);
  if (can_be_remembered) {
    for (const std::string& line : remembered_lines(options.memory_path)) {
      if (is_of(line, states)) return Fingerprint{line.substr(0, kDigestDigits), true};
    }
  }
  ASSIGN_OR_RETURN(std::string digest, digest_of(parts, options, stop));
  if (can_be_remembered) remember(options.memory_path, states, digest);
  return Fingerprint{std::move(digest), false};
}

Result<bool> confirm_fingerprint(std::span<const OpenedPart> parts, const std::string& digest,
                                 const FingerprintOptions& options, const std::atomic<bool>& stop) {
  Result<std::string> read = Error{};
  for (int tries = 0; tries < kConfirmTries; ++tries) {
    ASSIGN_OR_RETURN(const std::vector<OpenedPart> now, parts_now(parts, options));
    read = digest_of(now, options, stop);
    const bool has_changed = !read.ok() && read.error().code == ErrorCode::kCorrupt;
    if (!has_changed) break;
  }
  if (!read.ok()) return read.error();
  if (read.value() == digest) return true;
  if (!options.memory_path.empty()) remember(options.memory_path, states_text(parts), {});
  return false;
}

}  // namespace pagoda::gguf
