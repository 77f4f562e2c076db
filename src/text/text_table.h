// Many short texts in one allocation, by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::text {

class TextTable {
 public:
  void reserve(std::size_t texts) { ends_.reserve(texts); }
  void append(std::string_view text) {
    characters_.append(text);
    ends_.push_back(characters_.size());
  }

  std::size_t size() const { return ends_.size(); }
  // The view is valid until the next append.
  std::string_view operator[](std::size_t number) const {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return {characters_.data() + begin, ends_[number] - begin};
  }

 private:
  std::string characters_;
  std::vector<std::size_t> ends_;
};

}  // namespace pagoda::text
