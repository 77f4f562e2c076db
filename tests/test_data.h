// Where the checkout lies. test_data.cc alone knows: no other object depends on the folder, so that
// a compiler cache serves every checkout.
#pragma once

#include <string>

namespace pagoda {

std::string source_folder();
std::string test_data();  // tests/data

}  // namespace pagoda
