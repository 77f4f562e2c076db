#include "process/command_words.h"

#include <filesystem>
#include <system_error>

namespace pagoda::process {

std::string own_program() {
  std::error_code unknown;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return unknown ? "pagoda" : path.string();
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n\"'\\$`&|;<>()*?[]#~!{}") == std::string::npos;
    std::string quoted = word;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) {
      quoted.replace(at, 1, "'\\''");
    }
    if (!line.empty()) line += ' ';
    line += plain ? word : "'" + quoted + "'";
  }
  return line;
}

}  // namespace pagoda::process
