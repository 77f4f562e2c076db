#include "tidy/type_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> type_names(const std::string& text) {
  std::vector<std::string> names;
  for (const TypeDefinition& type : list_types(read_source("src/a/a.h", text))) {
    names.push_back(type.name);
  }
  return names;
}

Sources sources_of(const std::vector<std::pair<std::string, std::string>>& files) {
  Sources sources;
  for (const auto& [path, text] : files) sources[path] = read_source(path, text);
  return sources;
}

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "\n";
  return text;
}

TEST(TypeRulesTest, TypesOfANamespaceAreListed) {
  EXPECT_THAT(type_names("#define A {\\\n  }\nnamespace p::a {\nclass One {\n  int x;\n};\n"
                         "template <class T = int>\nstruct alignas(16) Two : Base<T> { T t; };\n"
                         "enum class [[nodiscard]] Three : int { kA };\nusing Four = int;\n}\n"),
              ElementsAre("One", "Two", "Three", "Four"));
  EXPECT_THAT(list_types(read_source("a.h", "namespace a {\n\nstruct\nA {\n  int b;\n};\n}\n")),
              ElementsAre(TypeDefinition{"A", 3, 6}));
}

TEST(TypeRulesTest, NestedAnonymousAndDeclaredTypesAreNot) {
  EXPECT_THAT(type_names("class A;\nstruct B make() { struct C {}; using D = int; return {}; }\n"
                         "namespace {\nstruct E {};\n}\nstruct F::G { int a; };\n"
                         "using namespace p;\nusing q::H;\n// struct I {};\n"),
              IsEmpty());
  EXPECT_THAT(
      type_names("class A {\n  struct B {};\n  using C = int;\n  enum class D { kE };\n};\n"),
      ElementsAre("A"));
}

TEST(TypeRulesTest, ANameIsInOneFolder) {
  EXPECT_THAT(types_in_two_folders(sources_of({{"src/a/x.h", "struct File {};\n"},
                                               {"src/a/y.h", "struct Other {};\n"},
                                               {"src/b/z.h", "\nclass File {};\n"}})),
              ElementsAre(PlacedFinding{"src/b/z.h", {2, "type 'File' is also in src/a/x.h"}}));
  EXPECT_THAT(types_in_two_folders(sources_of({{"src/a/x.h", "struct File {};\n"},
                                               {"src/a/y.h", "struct File {};\n"},
                                               {"src/b/z.cc", "struct File {};\n"},
                                               {"src/b/w.h", "class A { struct File {}; };\n"},
                                               {"tests/b/z.h", "struct File {};\n"}})),
              IsEmpty());
}

TEST(TypeRulesTest, SourcesOfALibraryShareNoNames) {
  const std::string file =
      "namespace {\nstruct Side {};\nconstexpr int kTries[2] = {2, 3};\nusing Json = int;\n"
      "const char* text() const { const int local = 1; return 0; }\nconst std::array<int, 2> "
      "kA;\n}\n";
  EXPECT_THAT(
      names_in_two_sources(sources_of({{"src/a/x.cc", file}, {"src/a/b/y.cc", "\n" + file}})),
      ElementsAre(PlacedFinding{"src/a/x.cc", {2, "'Side' is also in src/a/b/y.cc"}},
                  PlacedFinding{"src/a/x.cc", {3, "'kTries' is also in src/a/b/y.cc"}},
                  PlacedFinding{"src/a/x.cc", {6, "'kA' is also in src/a/b/y.cc"}}));
  EXPECT_THAT(names_in_two_sources(sources_of({{"src/a/x.cc", file},
                                               {"src/b/x.cc", file},
                                               {"src/a/x.h", file},
                                               {"tests/a/x.cc", file}})),
              IsEmpty());
}

TEST(TypeRulesTest, AClassIsCountedOverTheFilesThatDefineIt) {
  const std::string header = "class Cache {\n  void a();\n  void b();\n};\n" + lines(396);
  const std::string half = "Result<F<void()>> Cache::a() {\n}\n" + lines(198);
  EXPECT_THAT(classes_too_long(sources_of(
                  {{"src/kv/cache.h", header}, {"src/kv/a.cc", half}, {"src/kv/b.cc", half}})),
              IsEmpty());
  EXPECT_THAT(
      classes_too_long(sources_of(
          {{"src/kv/cache.h", header}, {"src/kv/a.cc", half}, {"src/kv/b.cc", half + "\n"}})),
      ElementsAre(
          PlacedFinding{"src/kv/cache.h", {1, "Cache has 801 lines in 3 files, at most 800"}}));
}

TEST(TypeRulesTest, AFileCountsForTheClassThatMostOfItDefines) {
  const std::string header = "class Cache {\n  void a();\n};\nclass Part { void b(); };\n";
  const std::string mine = "void Cache::a() {\n" + lines(450) + "}\n";
  const std::string others = "void Part::b() {\n" + lines(450) + "}\nvoid Cache::a() {}\n";
  EXPECT_THAT(classes_too_long(sources_of(
                  {{"src/kv/cache.h", header}, {"src/kv/a.cc", mine}, {"src/kv/b.cc", others}})),
              IsEmpty());
  EXPECT_THAT(classes_too_long(sources_of(
                  {{"src/kv/cache.h", header}, {"src/kv/a.cc", mine}, {"src/kv/b.cc", mine}})),
              ::testing::SizeIs(1));
  EXPECT_THAT(classes_too_long(sources_of(
                  {{"src/kv/cache.h", header}, {"src/kv/a.cc", mine}, {"src/b/b.cc", mine}})),
              IsEmpty());
}

}  // namespace
}  // namespace pagoda::tidy
