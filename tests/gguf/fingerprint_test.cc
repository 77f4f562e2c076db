#include "gguf/fingerprint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <filesystem>
#include <fstream>
#include <utility>

#include "gguf/file.h"
#include "gguf/gguf_writer.h"
#include "gguf/model_watch.h"

namespace pagoda::gguf {
namespace {

namespace fs = std::filesystem;

// By sha256sum; the first is a test vector of FIPS 180-2.
const std::string kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string kFirst = "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e";
const std::string kOther = "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa";

std::int64_t real_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class Opened {
 public:
  explicit Opened(const std::string& path, const FingerprintOptions& options = {})
      : part_{path, open(path.c_str(), O_RDONLY | O_CLOEXEC)} {
    if (part_.descriptor >= 0) part_.state = options.state_of(part_).value();
  }
  ~Opened() { close(part_.descriptor); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  const OpenedPart& part() const { return part_; }

 private:
  OpenedPart part_;
};

class Fingerprints : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fingerprint_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    options_.memory_path = path("memory");
    // As if every file had been left alone for a while.
    options_.now_ns = [] { return real_now_ns() + 60'000'000'000; };
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::trunc) << bytes;
    return path(name);
  }
  Result<Fingerprint> find(const std::vector<std::string>& paths) {
    std::vector<std::unique_ptr<Opened>> files;
    std::vector<OpenedPart> parts;
    for (const std::string& each : paths) {
      files.push_back(std::make_unique<Opened>(each, options_));
      parts.push_back(files.back()->part());
    }
    return fingerprint(parts, options_, stop_);
  }
  std::string digest(const std::string& name) { return find({name}).value().digest; }
  bool is_remembered(const std::string& name) { return find({name}).value().is_remembered; }

  fs::path folder_;
  FingerprintOptions options_;
  std::atomic<bool> stop_{false};
};

TEST_F(Fingerprints, AreTheSha256OfAllBytesInOrder) {
  const std::string a = write("a", "a");
  const std::string b = write("b", "bc");
  EXPECT_EQ(find({a, b}).value().digest, kAbc);
  EXPECT_NE(find({b, a}).value().digest, kAbc);
}

TEST_F(Fingerprints, AreRememberedWhileTheFileIsLeftAlone) {
  const std::string model = write("model", "first");
  EXPECT_FALSE(is_remembered(model));
  EXPECT_TRUE(is_remembered(model));
  EXPECT_EQ(digest(model), kFirst);
  // The copy has the same bytes and another inode.
  fs::copy_file(model, path("copy"));
  EXPECT_FALSE(is_remembered(path("copy")));
  EXPECT_TRUE(is_remembered(model)) << "both are remembered";
}

void set_times(const std::string& path, const struct stat& as) {
  const std::array<timespec, 2> times = {as.st_atim, as.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
}

// Each leaves path, size and modification time as they were.
TEST_F(Fingerprints, NoticeEveryWayToReplaceAFile) {
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> kWays = {
      {"written over", [&](const std::string&) { write("model", "other"); }},
      {"renamed over",
       [&](const std::string& model) { fs::rename(write("fresh", "other"), model); }},
      {"removed and made again",
       [&](const std::string& model) {
         fs::remove(model);
         write("model", "other");
       }},
      {"linked to",
       [&](const std::string& model) {
         fs::remove(model);
         fs::create_symlink(write("fresh", "other"), model);
       }},
  };
  for (const auto& [way, replace] : kWays) {
    fs::remove(path("model"));
    const std::string model = write("model", "first");
    ASSERT_EQ(digest(model), kFirst) << way;
    struct stat before = {};
    ASSERT_EQ(stat(model.c_str(), &before), 0);
    usleep(20'000);  // more than a tick of the file system's clock
    replace(model);
    set_times(model, before);
    struct stat after = {};
    ASSERT_EQ(stat(model.c_str(), &after), 0);
    ASSERT_EQ(after.st_size, before.st_size) << way;
    ASSERT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec) << way;
    EXPECT_FALSE(is_remembered(model)) << way;
    EXPECT_EQ(digest(model), kOther) << way;
  }
}

TEST_F(Fingerprints, AreOfTheFileThatIsOpenWhateverHasItsPath) {
  const std::string model = write("model", "first");
  fs::rename(model, path("moved"));
  const Opened opened(path("moved"));
  OpenedPart part = opened.part();
  part.path = write("model", "other");
  const std::vector<OpenedPart> parts = {part};
  EXPECT_EQ(fingerprint(parts, options_, stop_).value().digest, kFirst);
  EXPECT_TRUE(confirm_fingerprint(parts, kFirst, options_, stop_).value());
  EXPECT_EQ(digest(model), kOther);
}

// What is computed with may be what was there before, or after, or half of each. Every part of a
// model, also where the modification time is set back, and also when the digest was remembered.
TEST_F(Fingerprints, AModelOfWhichAPartChangedAfterItWasOpenedHasNone) {
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> kWays = {
      {"written over",
       [](const std::string& part) {
         std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
         file.seekp(-1, std::ios::end);
         file.put('\x5A');
       }},
      {"appended to",
       [](const std::string& part) {
         std::ofstream(part, std::ios::app | std::ios::binary) << 'x';
       }},
      {"renamed over",
       [&](const std::string& part) {
         fs::copy_file(part, path("fresh"));
         fs::rename(path("fresh"), part);
       }},
  };
  for (const auto& [way, change] : kWays) {
    for (std::size_t changed = 0; changed < 3; ++changed) {
      GgufWriter writer;
      for (const char* const name : {"a", "b", "c"}) {
        writer.add_tensor<float>(name, TensorType::kF32, {1}, {1.0f});
      }
      const std::vector<std::string> paths = writer.save_split(path("model"), 3);
      const Result<File> file = File::open(paths[0]);
      ASSERT_TRUE(file.ok()) << file.error().message;
      const std::vector<OpenedPart> parts = file.value().opened_parts();
      const std::string whole = fingerprint(parts, options_, stop_).value().digest;
      ASSERT_TRUE(fingerprint(parts, options_, stop_).value().is_remembered);
      ASSERT_TRUE(confirm_fingerprint(parts, whole, options_, stop_).value());
      struct stat before = {};
      ASSERT_EQ(stat(paths[changed].c_str(), &before), 0);
      usleep(20'000);  // more than a tick of the file system's clock
      change(paths[changed]);
      set_times(paths[changed], before);
      for (const std::string& memory : {options_.memory_path, std::string()}) {
        FingerprintOptions options = options_;
        options.memory_path = memory;
        const auto found = fingerprint(parts, options, stop_);
        ASSERT_FALSE(found.ok()) << way << ", part " << changed;
        EXPECT_NE(found.error().message.find(paths[changed]), std::string::npos)
            << found.error().message;
        const auto same = confirm_fingerprint(parts, whole, options, stop_);
        // The bytes of the open file decide where the change time alone has moved.
        EXPECT_EQ(same.ok() && same.value(), way == "renamed over") << way;
      }
      // The next one to open it is told what is there now.
      const Result<File> again = File::open(paths[0]);
      ASSERT_TRUE(again.ok()) << again.error().message;
      const auto now = fingerprint(again.value().opened_parts(), options_, stop_).value();
      EXPECT_EQ(now.digest == whole, way == "renamed over") << way;
    }
  }
}

// The file systems of statfs(2): which of them set change times that can be relied on.
TEST(FileStates, AreTrustedOnFileSystemsOfThisMachineAlone) {
  const std::vector<std::pair<std::string, std::uint64_t>> kTrusted = {
      {"ext4", 0xEF53},    {"xfs", 0x58465342},  {"btrfs", 0x9123683E},   {"tmpfs", 0x01021994},
      {"zfs", 0x2FC12FC1}, {"f2fs", 0xF2F52010}, {"bcachefs", 0xCA451A4E}};
  const std::vector<std::pair<std::string, std::uint64_t>> kForeign = {
      {"nfs", 0x6969},          {"overlay", 0x794C7630}, {"erofs", 0xE0F5E1E2},
      {"squashfs", 0x73717368}, {"iso9660", 0x9660},     {"smb", 0x517B},
      {"cifs", 0xFF534D42},     {"smb2", 0xFE534D42},    {"fuse", 0x65735546},
      {"ceph", 0x00C36400},     {"afs", 0x5346414F},     {"9p", 0x01021997},
      {"coda", 0x73757245},     {"gfs2", 0x01161970},    {"lustre", 0x0BD00BD0},
      {"gpfs", 0x47504653},     {"ocfs2", 0x7461636F},   {"vfat", 0x4D44},
      {"exfat", 0x2011BAB0},    {"unknown", 0x12345678}, {"none", 0}};
  constexpr std::int64_t kSecond = 1'000'000'000;
  for (const auto& [name, type] : kTrusted) {
    EXPECT_TRUE(keeps_change_times(type)) << name;
    const FileState state = {.changed_ns = 100 * kSecond, .filesystem = type};
    EXPECT_TRUE(tells_changes(state, 102 * kSecond)) << name;
    EXPECT_FALSE(tells_changes(state, 102 * kSecond - 1)) << name << ", younger than 2 s";
    EXPECT_FALSE(tells_changes(state, 50 * kSecond)) << name << ", of the future";
  }
  for (const auto& [name, type] : kForeign) {
    EXPECT_FALSE(keeps_change_times(type)) << name;
    const FileState state = {.changed_ns = 100 * kSecond, .filesystem = type};
    EXPECT_FALSE(tells_changes(state, 1000 * kSecond)) << name;
  }
}

TEST_F(Fingerprints, AreReadEachTimeWhereChangeTimesSayNothing) {
  const std::string model = write("model", "first");
  ASSERT_EQ(digest(model), kFirst);
  ASSERT_TRUE(is_remembered(model));
  const auto state_of = options_.state_of;
  options_.state_of = [&](const OpenedPart& part) {
    Result<FileState> state = state_of(part);
    state.value().filesystem = 0x6969;  // NFS
    return state;
  };
  EXPECT_FALSE(is_remembered(model)) << "what was remembered of another file system's file";
  EXPECT_FALSE(is_remembered(model));
  EXPECT_EQ(digest(model), kFirst);
}

TEST_F(Fingerprints, AreNotRememberedOfAFileThatHasJustChanged) {
  const std::string model = write("model", "first");
  options_.now_ns = real_now_ns;
  EXPECT_FALSE(is_remembered(model));
  options_.now_ns = [] { return real_now_ns() + 60'000'000'000; };
  EXPECT_FALSE(is_remembered(model)) << "it was younger than 2 s when it could be remembered";
  EXPECT_TRUE(is_remembered(model));
}

TEST_F(Fingerprints, AClaimIsConfirmedOrForgotten) {
  const Opened opened(write("model", "first"));
  const std::vector<OpenedPart> parts = {opened.part()};
  ASSERT_EQ(fingerprint(parts, options_, stop_).value().digest, kFirst);
  EXPECT_TRUE(confirm_fingerprint(parts, kFirst, options_, stop_).value());
  EXPECT_TRUE(is_remembered(path("model")));
  EXPECT_FALSE(confirm_fingerprint(parts, kOther, options_, stop_).value());
  EXPECT_FALSE(is_remembered(path("model"))) << "nothing wrong is remembered";
}

// Whichever look is the first that sees the change: the last one is after the bytes were read.
TEST_F(Fingerprints, AFileThatChangesWhileItIsReadHasNone) {
  const Opened opened(write("model", "first"));
  const std::vector<OpenedPart> parts = {opened.part()};
  const auto state_of = options_.state_of;
  options_.memory_path = {};
  int looks = 0;
  int changed_at = INT_MAX;
  options_.state_of = [&](const OpenedPart& part) {
    Result<FileState> state = state_of(part);
    state.value().changed_ns += ++looks >= changed_at ? 1 : 0;
    return state;
  };
  ASSERT_TRUE(fingerprint(parts, options_, stop_).ok());
  const int looks_to_find = std::exchange(looks, 0);
  ASSERT_TRUE(confirm_fingerprint(parts, kFirst, options_, stop_).value());
  const int looks_to_confirm = looks;
  ASSERT_GE(std::min(looks_to_find, looks_to_confirm), 2) << "before and after it is read";
  for (changed_at = 1; changed_at <= looks_to_find; ++changed_at) {
    looks = 0;
    const auto found = fingerprint(parts, options_, stop_);
    ASSERT_FALSE(found.ok()) << changed_at;
    EXPECT_NE(found.error().message.find(path("model")), std::string::npos);
  }
  for (changed_at = 1; changed_at <= looks_to_confirm; ++changed_at) {
    looks = 0;
    EXPECT_TRUE(confirm_fingerprint(parts, kFirst, options_, stop_).value())
        << changed_at << ": attributes changed, the bytes did not";
    looks = 0;
    EXPECT_FALSE(confirm_fingerprint(parts, kOther, options_, stop_).value()) << changed_at;
  }
  options_.state_of = [&](const OpenedPart& part) {
    Result<FileState> state = state_of(part);
    state.value().modified_ns += ++looks >= changed_at ? 1 : 0;
    return state;
  };
  for (changed_at = 1; changed_at <= looks_to_confirm; ++changed_at) {
    looks = 0;
    EXPECT_FALSE(confirm_fingerprint(parts, kFirst, options_, stop_).ok()) << changed_at;
  }
  options_.state_of = [&](const OpenedPart& part) {
    Result<FileState> state = state_of(part);
    state.value().changed_ns += ++looks;
    return state;
  };
  EXPECT_FALSE(confirm_fingerprint(parts, kFirst, options_, stop_).ok()) << "it never rests";
}

TEST_F(Fingerprints, AreRememberedInAFolderThatIsMade) {
  options_.memory_path = path("new/folder/memory");
  const std::string model = write("model", "first");
  EXPECT_FALSE(is_remembered(model));
  EXPECT_TRUE(is_remembered(model));
}

TEST_F(Fingerprints, AWatchSeesEveryChangeForGood) {
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> kWays = {
      {"written over", [&](const std::string&) { write("model", "other"); }},
      {"attributes",
       [](const std::string& model) { fs::permissions(model, fs::perms::owner_read); }},
      {"renamed over",
       [&](const std::string& model) { fs::rename(write("fresh", "other"), model); }},
  };
  for (const auto& [way, change] : kWays) {
    fs::remove(path("model"));
    const std::string model = write("model", "first");
    const Opened opened(model);
    ModelWatch watch({opened.part()});
    EXPECT_TRUE(watch.is_unchanged()) << way;
    usleep(20'000);  // more than a tick of the file system's clock
    change(model);
    EXPECT_FALSE(watch.is_unchanged()) << way;
    EXPECT_TRUE(watch.wait_for_change()) << way;
    EXPECT_FALSE(watch.is_unchanged()) << way;
    watch.stop();
    EXPECT_FALSE(watch.wait_for_change()) << way;
  }
}

// States of other file systems say nothing, and asking for them may wait for a network.
TEST_F(Fingerprints, AWatchLeavesOtherFileSystemsAlone) {
  const Opened opened(write("model", "first"));
  OpenedPart part = opened.part();
  part.state.filesystem = 0x6969;  // NFS
  part.state.changed_ns = 1;
  ModelWatch watch({part});
  EXPECT_TRUE(watch.is_unchanged());
}

TEST_F(Fingerprints, ADamagedMemoryIsReadOver) {
  const std::string model = write("model", "abc");
  write("memory",
        "nonsense\n\n" + std::string(1000, 'x') + "\n" + kOther + " 3 1.0 " + model + " \n");
  EXPECT_EQ(digest(model), kAbc);
  EXPECT_TRUE(is_remembered(model));
}

TEST_F(Fingerprints, NameAFileThatCannotBeRead) {
  const auto missing = find({"/nowhere/model"});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("/nowhere/model"), std::string::npos);
}

TEST_F(Fingerprints, CanBeStopped) {
  stop_ = true;
  EXPECT_FALSE(find({write("model", "abc")}).ok());
  EXPECT_FALSE(fs::exists(options_.memory_path));
}

}  // namespace
}  // namespace pagoda::gguf
