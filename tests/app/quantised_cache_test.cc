#include "app/quantised_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "gguf/gguf_writer.h"
#include "hf/test_folder.h"

namespace pagoda::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kPlenty = 1 << 20;

// A model file that says which one it is; all of them are equally long.
gguf::Bytes model_bytes(char which) {
  gguf::GgufWriter model;
  model.add("general.name", std::string(1, which));
  model.add_tensor<float>("w", gguf::TensorType::kF32, {64}, std::vector<float>(64, which));
  return model.bytes();
}

const std::uint64_t kModelBytes = model_bytes('a').size();

// A cache over a folder of its own; counts what is written into it.
class KeptModels : public testing::Test {
 protected:
  Result<gguf::File> open(const std::string& key, std::optional<std::uint64_t> bytes_max,
                          std::chrono::milliseconds takes = {}) {
    QuantisedCache cache(folder_.path() + "/kept", bytes_max);
    const gguf::Bytes bytes = model_bytes(key.front());
    return cache.open(key, {.bytes = bytes.size(),
                            .check = [] { return ok_status(); },
                            .write =
                                [&](gguf::FileWriter& writer) {
                                  ++written_;
                                  std::this_thread::sleep_for(takes);
                                  return writer.append(bytes);
                                }});
  }
  // Opens, looks and closes again. Returns how many models were written for it.
  int written_for(const std::string& key, std::uint64_t bytes_max = kPlenty) {
    const int before = written_;
    const auto file = open(key, bytes_max);
    EXPECT_TRUE(file.ok()) << file.error().message;
    if (!file.ok()) return -1;
    EXPECT_EQ(file.value().metadata().text("general.name").value(), key);
    return written_ - before;
  }

  std::string path(const std::string& name) const { return folder_.path() + "/kept/" + name; }

  // The models that are kept, without the lock.
  std::set<std::string> kept() const {
    std::set<std::string> names = hf::list_names(folder_.path() + "/kept");
    EXPECT_EQ(names.erase("lock"), 1U);
    std::set<std::string> models;
    for (const std::string& name : names) {
      if (!name.ends_with(".gguf")) continue;
      models.insert(name.substr(0, name.size() - 5));
    }
    EXPECT_EQ(names.size(), 2 * models.size());  // a digest each
    return models;
  }

  // As if the model was last used then.
  void set_used(const std::string& key, std::int64_t seconds) const {
    const timespec times[2] = {{.tv_sec = seconds, .tv_nsec = 0},
                               {.tv_sec = seconds, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path(key + ".sha256").c_str(), times, 0), 0);
  }

  hf::TestFolder folder_;
  std::atomic<int> written_ = 0;
};

TEST_F(KeptModels, AreWrittenOnce) {
  EXPECT_EQ(written_for("a"), 1);
  EXPECT_EQ(written_for("a"), 0);
  EXPECT_EQ(written_for("b"), 1);
  EXPECT_EQ(written_for("a"), 0);
  EXPECT_THAT(kept(), ElementsAre("a", "b"));
}

// Servers watch the files of their models: one that is used again must look as it did.
TEST_F(KeptModels, AreNotTouchedByBeingUsed) {
  written_for("a");
  struct stat before = {};
  ASSERT_EQ(::stat(path("a.gguf").c_str(), &before), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  written_for("a");
  struct stat after = {};
  ASSERT_EQ(::stat(path("a.gguf").c_str(), &after), 0);
  EXPECT_EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
  EXPECT_EQ(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
}

TEST_F(KeptModels, TheRecordIsThatOfSha256sum) {
  written_for("a");
  const std::string command =
      "cd " + folder_.path() + "/kept && sha256sum --check --quiet a.sha256";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST_F(KeptModels, AreWrittenAgainWhenTheyAreDamaged) {
  const auto overwrite = [&](std::streamoff at, const std::string& with) {
    std::fstream file(path("a.gguf"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file << with;
  };
  const std::vector<std::function<void()>> damages = {
      [&] { overwrite(static_cast<std::streamoff>(kModelBytes) - 7, "x"); },  // a weight
      [&] { overwrite(0, "no model"); },
      [&] { std::filesystem::resize_file(path("a.gguf"), kModelBytes - 1); },
      [&] { std::filesystem::resize_file(path("a.gguf"), 0); },
      [&] { std::ofstream(path("a.sha256")) << std::string(64, '0'); },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    written_for("a");
    damages[i]();
    testing::internal::CaptureStderr();
    EXPECT_EQ(written_for("a"), 1) << i;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("quantised again")) << i;
    EXPECT_EQ(said.find("warning"), said.rfind("warning")) << i;
    EXPECT_EQ(written_for("a"), 0) << i;
  }
}

TEST_F(KeptModels, ThatAreNotWholeAreWrittenAgainInSilence) {
  written_for("a");
  std::filesystem::remove(path("a.sha256"));
  EXPECT_EQ(written_for("a"), 1);
  std::filesystem::remove(path("a.gguf"));
  EXPECT_EQ(written_for("a"), 1);
}

TEST_F(KeptModels, TheLeastRecentlyUsedGoFirst) {
  for (const char* const key : {"a", "b", "c"}) written_for(key);
  set_used("a", 2000);
  set_used("b", 1000);
  set_used("c", 3000);
  EXPECT_EQ(written_for("d", 3 * kModelBytes), 1);
  EXPECT_THAT(kept(), ElementsAre("a", "c", "d"));
  written_for("a");  // used now, as d
  EXPECT_EQ(written_for("e", 3 * kModelBytes), 1);
  EXPECT_THAT(kept(), ElementsAre("a", "d", "e"));
}

TEST_F(KeptModels, BeyondASmallerLimitGoWhenOneIsUsed) {
  for (const char* const key : {"a", "b", "c"}) written_for(key);
  set_used("b", 1000);
  set_used("a", 2000);
  EXPECT_EQ(written_for("c", 2 * kModelBytes), 0);
  EXPECT_THAT(kept(), ElementsAre("a", "c"));
  EXPECT_EQ(written_for("c", 0), 0);  // it is in use itself
  EXPECT_THAT(kept(), ElementsAre("c"));
}

TEST_F(KeptModels, ThatAreInUseStay) {
  const auto held = open("a", kPlenty);
  ASSERT_TRUE(held.ok());
  written_for("b");
  set_used("a", 1000);
  EXPECT_EQ(written_for("c", 2 * kModelBytes), 1);
  EXPECT_THAT(kept(), ElementsAre("a", "c"));
  // There is no room beside what is in use: removing others would not help.
  testing::internal::CaptureStderr();
  EXPECT_EQ(written_for("d", kModelBytes), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is not kept"));
  EXPECT_THAT(kept(), ElementsAre("a", "c"));
}

TEST_F(KeptModels, ThatDoNotFitAreUsedAndNotKept) {
  for (const std::uint64_t bytes_max : {std::uint64_t{0}, kModelBytes - 1}) {
    testing::internal::CaptureStderr();
    const auto file = open("a", bytes_max);
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(said.find("is not kept") == std::string::npos, bytes_max == 0) << said;
    EXPECT_EQ(file.value().tensors().size(), 1U);
    EXPECT_THAT(kept(), IsEmpty());
    // Its state is that at its opening: a server keeps KV for it.
    const gguf::OpenedPart part = file.value().opened_parts().front();
    EXPECT_EQ(gguf::file_state(part.descriptor, part.path).value(), part.state);
  }
  EXPECT_EQ(written_, 2);
}

TEST_F(KeptModels, TwoAtOnceAreWrittenOnce) {
  std::vector<std::thread> starts;
  std::atomic<int> opened = 0;
  for (int i = 0; i < 4; ++i) {
    starts.emplace_back([&] {
      const auto file = open("a", kPlenty, std::chrono::milliseconds(100));
      if (file.ok()) ++opened;
    });
  }
  for (std::thread& start : starts) start.join();
  EXPECT_EQ(opened, 4);
  EXPECT_EQ(written_, 1);
}

TEST_F(KeptModels, FilesOfKilledProcessesAreSweptAway) {
  written_for("a");
  for (const char* const name : {"x.gguf.tmp", "y.gguf", "z.sha256"}) {
    std::ofstream(path(name)) << "left";
  }
  written_for("b");
  EXPECT_THAT(kept(), ElementsAre("a", "b"));
}

TEST_F(KeptModels, AFailureLeavesNothing) {
  QuantisedCache cache(folder_.path() + "/kept", kPlenty);
  const auto failed = cache.open("a", {.bytes = 10,
                                       .check = [] { return ok_status(); },
                                       .write = [](gguf::FileWriter& writer) -> Status {
                                         RETURN_IF_ERROR(writer.append(gguf::bytes_of("half")));
                                         return Error{ErrorCode::kIo, "disk is full"};
                                       }});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "disk is full");
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(KeptModels, AModelThatIsRefusedCostsNoOther) {
  written_for("a");
  QuantisedCache cache(folder_.path() + "/kept", kModelBytes);
  const auto refused = cache.open("b", {.bytes = kModelBytes,
                                        .check =
                                            [] {
                                              return Status(Error{ErrorCode::kUnsupported, "no"});
                                            },
                                        .write = [](gguf::FileWriter&) { return ok_status(); }});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(kept(), ElementsAre("a"));
}

TEST_F(KeptModels, MoreThanTheDiskHasIsAnErrorThatSaysSo) {
  QuantisedCache cache(folder_.path() + "/kept", std::uint64_t{1} << 62);
  const auto refused = cache.open("a", {.bytes = std::uint64_t{1} << 61,
                                        .check = [] { return ok_status(); },
                                        .write = [](gguf::FileWriter&) { return ok_status(); }});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("are free there"));
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(KeptModels, AFolderThatCannotBeMadeIsAnErrorThatNamesIt) {
  folder_.write("file", "");
  QuantisedCache cache(folder_.path() + "/file/kept", kPlenty);
  const auto refused = cache.open("a", {.bytes = 10, .check = {}, .write = {}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(
      refused.error().message,
      HasSubstr(
          "/file/kept: cannot write quantised models there: Not a directory; set XDG_CACHE_HOME"));
}

// No file can be made in /proc, not even by root.
TEST_F(KeptModels, AFolderThatCannotBeWrittenIsAnErrorThatNamesIt) {
  QuantisedCache cache("/proc/self", kPlenty);
  const auto refused = cache.open("a", {.bytes = 10, .check = {}, .write = {}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              testing::StartsWith("/proc/self: cannot write quantised models there: "));
}

TEST_F(KeptModels, ByDefaultHaveHalfOfASmallDisk) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  EXPECT_EQ(QuantisedCache::default_bytes(1000 * kGiB, 0), 32 * kGiB);
  EXPECT_EQ(QuantisedCache::default_bytes(20 * kGiB, 0), 10 * kGiB);
  EXPECT_EQ(QuantisedCache::default_bytes(12 * kGiB, 8 * kGiB), 10 * kGiB);
}

}  // namespace
}  // namespace pagoda::app
