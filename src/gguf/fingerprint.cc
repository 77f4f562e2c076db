#include "gguf/fingerprint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

namespace pagoda::gguf {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kRemembered = 64;  // sets of files

Error io_error(const std::string& path) {
  return Error{ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno))};
}

// Changes whenever the files do.
Result<std::string> state_of(const std::vector<std::string>& paths) {
  std::string state;
  for (const std::string& path : paths) {
    struct stat info = {};
    if (stat(path.c_str(), &info) != 0) return io_error(path);
    state += fmt::format("{} {}.{:09} {} ", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                         std::filesystem::absolute(path).string());
  }
  return state;
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Hash = std::unique_ptr<EVP_MD_CTX, FreeContext>;

Status add_file(const std::string& path, const Hash& hash, const std::atomic<bool>& stop) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return io_error(path);
  std::vector<char> chunk(kChunkBytes);
  Status outcome = ok_status();
  while (outcome.ok()) {
    const ssize_t count = read(file, chunk.data(), chunk.size());
    if (count == 0) break;
    if (count < 0) {
      outcome = io_error(path);
    } else if (stop) {
      outcome = Error{ErrorCode::kExhausted, "stopped"};
    } else {
      EVP_DigestUpdate(hash.get(), chunk.data(), static_cast<std::size_t>(count));
    }
  }
  close(file);
  return outcome;
}

Result<std::string> hash_of(const std::vector<std::string>& paths, const std::atomic<bool>& stop) {
  const Hash hash(EVP_MD_CTX_new());
  EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr);
  for (const std::string& path : paths) RETURN_IF_ERROR(add_file(path, hash, stop));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int bytes = 0;
  EVP_DigestFinal_ex(hash.get(), digest.data(), &bytes);
  std::string hex;
  for (unsigned int i = 0; i < bytes; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

// A line: digest, a space, state.
constexpr std::size_t kDigestDigits = 64;

std::vector<std::string> remembered_lines(const std::string& memory_path) {
  std::vector<std::string> lines;
  std::ifstream file(memory_path);
  for (std::string line; lines.size() < kRemembered && std::getline(file, line);) {
    if (line.size() > kDigestDigits && line[kDigestDigits] == ' ') lines.push_back(line);
  }
  return lines;
}

// The newest first. What cannot be written is not remembered.
void remember(const std::string& memory_path, std::vector<std::string> lines) {
  const std::string fresh = fmt::format("{}.{}", memory_path, getpid());
  {
    std::ofstream file(fresh, std::ios::trunc);
    for (const std::string& line : lines) file << line << '\n';
    if (!file.flush()) return;
  }
  std::error_code ignored;
  std::filesystem::rename(fresh, memory_path, ignored);
}

}  // namespace

Result<std::string> fingerprint(const std::vector<std::string>& paths,
                                const std::string& memory_path, const std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(const std::string state, state_of(paths));
  std::vector<std::string> lines;
  if (!memory_path.empty()) lines = remembered_lines(memory_path);
  for (const std::string& line : lines) {
    if (line.compare(kDigestDigits + 1, std::string::npos, state) == 0) {
      return line.substr(0, kDigestDigits);
    }
  }
  ASSIGN_OR_RETURN(std::string digest, hash_of(paths, stop));
  ASSIGN_OR_RETURN(const std::string state_after, state_of(paths));
  if (state_after != state) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: changed while it was read", paths.front())};
  }
  if (!memory_path.empty()) {
    lines.insert(lines.begin(), digest + " " + state);
    if (lines.size() > kRemembered) lines.resize(kRemembered);
    remember(memory_path, std::move(lines));
  }
  return digest;
}

}  // namespace pagoda::gguf
