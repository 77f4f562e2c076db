// The memory that a File owns where its keys and tensors are in no mapped file.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "gguf/file.h"

namespace pagoda::gguf {

struct File::Storage {
  std::deque<std::string> texts;  // keys, names and text values; a deque, so that none ever moves
  std::vector<std::unique_ptr<std::byte[]>> blocks;
};

}  // namespace pagoda::gguf
