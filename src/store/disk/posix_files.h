// PosixFiles is the file layer over a real folder.
#pragma once

#include "store/disk/file_layer.h"

namespace pagoda::store {

class PosixFiles final : public FileLayer {
 public:
  explicit PosixFiles(std::string path);
  ~PosixFiles() override;
  PosixFiles(const PosixFiles&) = delete;
  PosixFiles& operator=(const PosixFiles&) = delete;

  std::string path() const override { return path_; }
  int make_folder() override;
  int lock(bool shared) override;
  OpenedFile open(const std::string& name, OpenMode mode) override;
  std::vector<FileSize> list() override;
  int remove(const std::string& name) override;
  int sync_folder() override;

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace pagoda::store
