// SharedList never changes once it is made: copies share its elements, so that a copy costs a
// pointer whatever the list holds.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace pagoda {

template <class Element>
class SharedList {
 public:
  SharedList() = default;
  SharedList(std::vector<Element> elements)  // NOLINT(google-explicit-constructor)
      : elements_(elements.empty()
                      ? nullptr
                      : std::make_shared<const std::vector<Element>>(std::move(elements))) {}
  SharedList(std::initializer_list<Element> elements)
      : SharedList(std::vector<Element>(elements)) {}

  const Element* begin() const { return elements_ ? elements_->data() : nullptr; }
  const Element* end() const { return begin() + size(); }
  const Element* data() const { return begin(); }
  std::size_t size() const { return elements_ ? elements_->size() : 0; }
  bool empty() const { return size() == 0; }
  const Element& operator[](std::size_t index) const { return (*elements_)[index]; }

 private:
  std::shared_ptr<const std::vector<Element>> elements_;  // nullptr: the list is empty
};

}  // namespace pagoda
