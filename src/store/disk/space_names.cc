#include "store/disk/space_names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_bytes.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kSpacesFileBytesMax = std::size_t{1} << 18;
constexpr std::size_t kTextBytesMax = 512;
constexpr std::size_t kDigits = 2 * sizeof(kv::SpaceId::digest);

struct SpaceLine {
  kv::SpaceId space;
  std::string text;
};

std::string spaces_path(const std::string& folder) { return folder + "/spaces"; }

std::optional<unsigned> value_of(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a' + 10);
  return std::nullopt;
}

std::optional<SpaceLine> parse_line(std::string_view line) {
  if (line.size() < kDigits + 2 || line[kDigits] != ' ') return std::nullopt;
  SpaceLine parsed;
  for (std::size_t i = 0; i < parsed.space.digest.size(); ++i) {
    const auto high = value_of(line[2 * i]);
    const auto low = value_of(line[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    parsed.space.digest[i] = static_cast<std::byte>(16 * *high + *low);
  }
  const std::string_view text = line.substr(kDigits + 1);
  const bool is_plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!is_plain || text.size() > kTextBytesMax) return std::nullopt;
  parsed.text = text;
  return parsed;
}

std::vector<SpaceLine> read_lines(const std::string& folder) {
  std::vector<SpaceLine> lines;
  const Result<FileBytes> file = read_file_bytes(spaces_path(folder), kSpacesFileBytesMax);
  if (!file.ok()) return lines;
  std::string_view rest = file.value().bytes;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (auto line = parse_line(rest.substr(0, end))) lines.push_back(*std::move(line));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

Status write_whole(const std::string& path, const std::string& bytes) {
  const auto failed = [&] {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno))};
  };
  const std::string fresh = path + ".new";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return failed();
  const bool is_written =
      ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const bool is_closed = ::close(file) == 0;
  if (is_written && is_closed && ::rename(fresh.c_str(), path.c_str()) == 0) return ok_status();
  const Status outcome = failed();
  ::unlink(fresh.c_str());
  return outcome;
}

}  // namespace

Status note_space(const std::string& folder, const kv::SpaceId& space, const std::string& text) {
  std::vector<SpaceLine> lines = read_lines(folder);
  const bool is_known = std::any_of(lines.begin(), lines.end(), [&](const SpaceLine& line) {
    return line.space == space && line.text == text;
  });
  if (is_known) return ok_status();
  std::erase_if(lines, [&](const SpaceLine& line) { return line.space == space; });
  lines.push_back({space, text});
  if (lines.size() > kSpaceNamesMax) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kSpaceNamesMax));
  }
  std::string bytes;
  for (const SpaceLine& line : lines) {
    for (const std::byte byte : line.space.digest) {
      bytes += fmt::format("{:02x}", std::to_integer<int>(byte));
    }
    bytes += fmt::format(" {}\n", line.text);
  }
  return write_whole(spaces_path(folder), bytes);
}

SpaceNames read_space_names(const std::string& folder) {
  SpaceNames names;
  for (SpaceLine& line : read_lines(folder)) names[line.space] = std::move(line.text);
  return names;
}

}  // namespace pagoda::store
