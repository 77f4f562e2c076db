// main() of a fuzzer that does not fuzz: feeds it the empty input and every file of the folders
// given, once, so that any compiler builds it and `make test` runs the committed inputs.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// Always in the same order; empty where there is no such folder.
std::set<fs::path> files_in(const fs::path& folder) {
  std::set<fs::path> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    if (entry.is_regular_file()) files.insert(entry.path());
  }
  return files;
}

void feed(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);  // the input that a crash is about is the last one named
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  LLVMFuzzerTestOneInput(nullptr, 0);
  bool is_complete = argc > 1;
  for (int i = 1; i < argc; ++i) {
    const std::set<fs::path> files = files_in(argv[i]);
    for (const fs::path& path : files) feed(path);
    std::printf("%zu inputs in %s\n", files.size(), argv[i]);
    is_complete = is_complete && !files.empty();
  }
  return is_complete ? 0 : 1;
}
