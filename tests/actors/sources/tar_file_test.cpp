#include "actors/sources/tar_file.h"

#include <catch2/catch.hpp>

#include "actors/sources/picture_root.h"
#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

std::string shard(const std::string& name) { return std::string(TROUPE_SHARDS) + "/" + name; }

TEST_CASE("Members of GNU, pax and plain archives are found by name and hold the bytes that were put in") {
  const std::string picture = fixture::contents(shard("picture.png"));
  const std::string deep = "folder/" + std::string(180, 'n') + "/deep.png";
  for (const std::string name : {"gnu.tar", "pax.tar", "ustar.tar"}) {
    INFO(name);
    const auto tar = TarFile::open(shard(name));
    REQUIRE(tar.ok());
    CHECK((*tar)->members().size() == 4);  // not the folder
    for (const std::string& member :
         {std::string("a.png"), std::string("./a.png"), name == "ustar.tar" ? std::string("folder/b.png") : deep}) {
      const auto* found = (*tar)->find(member);
      REQUIRE(found != nullptr);
      CHECK((*tar)->bytes(*found) == picture);
    }
    REQUIRE((*tar)->find("empty.png") != nullptr);
    CHECK((*tar)->bytes(*(*tar)->find("empty.png")).empty());
    CHECK((*tar)->find("link.png")->fault == "is a link to '/etc/passwd', which is not in the archive");
    CHECK((*tar)->find("nowhere.png") == nullptr);
  }
}

TEST_CASE("A link holds what it points to where that is in the archive, and else says where it points") {
  const auto tar = TarFile::open(shard("links.tar"));
  REQUIRE(tar.ok());
  const std::string picture = fixture::contents(shard("picture.png"));
  for (const char* name : {"x/001.png", "x/002.png"}) {
    const auto* found = (*tar)->find(name);
    REQUIRE(found != nullptr);
    CHECK(found->is_link());
    CHECK((*tar)->bytes(*found) == picture);
  }
  CHECK((*tar)->find("x/004.png")->fault == "is a link to '../elsewhere.png', which is not in the archive");
  CHECK((*tar)->find("x/005.png")->fault == "is a link to 'x/005.png', which is not in the archive");
  CHECK((*tar)->find("x/latest") == nullptr);
  CHECK((*tar)->find("x/latest.v2") == nullptr);  // points to a folder
  CHECK((*tar)->bytes(*(*tar)->find("x/006.png")) == picture);
  CHECK((*tar)->find("x/007.png")->fault == "is a link to 'x/004.png', which cannot be had itself");
  CHECK((*tar)->samples().size() == 8);
}

TEST_CASE("A hard link holds the member before it, where a later one has the same name") {
  const auto tar = TarFile::open(shard("again.tar"));
  REQUIRE(tar.ok());
  CHECK((*tar)->bytes(*(*tar)->find("first.txt")) == "old");
  CHECK((*tar)->bytes(*(*tar)->find("second.txt")) == "new");
  CHECK((*tar)->bytes(*(*tar)->find("soft.txt")) == "new");
}

TEST_CASE("Neighbouring members with one key are a sample") {
  const auto tar = TarFile::open(shard("shard.tar"));
  REQUIRE(tar.ok());
  const auto samples = (*tar)->samples();
  REQUIRE(samples.size() == 4);
  CHECK(samples[0].key == "x/000");
  CHECK(samples[0].members.size() == 2);
  CHECK(samples[1].members.size() == 3);
  CHECK(member_extension("x.y/001.Left.PNG") == "left.png");
  CHECK(member_extension("x.y/none").empty());
}

TEST_CASE("Members with one key are one sample wherever they lie, and hidden ones are of none") {
  const auto pieces = TarFile::open(shard("pieces.tar"));
  REQUIRE(pieces.ok());
  const auto samples = (*pieces)->samples();
  REQUIRE(samples.size() == 7);
  for (size_t i = 0; i < samples.size(); ++i) {
    INFO(i);
    CHECK(samples[i].key == "x/00" + std::to_string(i));
    CHECK(samples[i].apart == (i < 2));
  }
  CHECK(samples[0].members == std::vector<size_t>{0, 6});
  CHECK(samples[1].members == std::vector<size_t>{1, 5});
  const auto hidden = TarFile::open(shard("hidden.tar"));
  REQUIRE(hidden.ok());
  const auto whole = (*hidden)->samples();
  REQUIRE(whole.size() == 2);
  CHECK(whole[0].members == std::vector<size_t>{2, 4});
  CHECK(whole[1].members == std::vector<size_t>{6, 8});
  for (const auto& sample : whole)
    for (const size_t m : sample.members) {
      const auto again = (*hidden)->sample_at((*hidden)->members()[m].offset);
      CHECK(again.key == sample.key);
      CHECK(again.members == sample.members);
    }
}

TEST_CASE(
    "Archives written behind each other are read as one, one that cannot be read is a fault, and other bytes behind "
    "the end are left out") {
  const fixture::Scratch scratch;
  const std::string one = fixture::contents(shard("gnu.tar"));
  const auto alone = TarFile::open(shard("gnu.tar")), twice = TarFile::open(scratch.write("twice.tar", one + one));
  REQUIRE((alone.ok() && twice.ok()));
  CHECK((*twice)->fault().empty());
  CHECK((*twice)->members().size() == 2 * (*alone)->members().size());
  const size_t members = (*alone)->members().size();
  CHECK_FALSE((*alone)->joined());
  CHECK((*twice)->joined());
  CHECK((*twice)->members()[members].name == "a.png");
  CHECK((*twice)->bytes((*twice)->members()[members]) == fixture::contents(shard("picture.png")));
  for (const std::string& tail :
       {std::string("\n"), std::string(100, '\0'), std::string(1500, '\0'), std::string(1024, 'x')}) {
    const auto more = TarFile::open(scratch.write("more.tar", one + tail));
    REQUIRE(more.ok());
    CHECK((*more)->fault().empty());
    CHECK((*more)->members().size() == members);
  }
  // A header that is damaged is no end, whatever zeros stand behind it.
  for (const char fill : {'\xA5', '\0'}) {
    std::string header = fixture::contents(shard("shard.tar"));
    const size_t last = header.find("x/003.txt");
    REQUIRE(last != std::string::npos);
    const auto broken = TarFile::open(scratch.write("broken.tar", header.replace(last, 512, std::string(512, fill))));
    REQUIRE(broken.ok());
    CHECK_FALSE((*broken)->fault().empty());
  }
  const auto damaged = TarFile::open(scratch.write("damaged.tar", one + "x" + one));
  REQUIRE(damaged.ok());
  CHECK_FALSE((*damaged)->fault().empty());
}

TEST_CASE("Compressed, cut off and foreign files are refused with their reason") {
  const auto reason = [](const std::string& path) {
    const auto tar = TarFile::open(path);
    REQUIRE_FALSE(tar.ok());
    return tar.error().to_string();
  };
  CHECK(reason(shard("small.tar.gz")).find("gzip") != std::string::npos);
  CHECK(reason(shard("picture.png")).find("not a tar") != std::string::npos);
  CHECK(reason(shard("nowhere.tar")).find("nowhere.tar") != std::string::npos);
  const fixture::Scratch scratch;
  const std::string whole = fixture::contents(shard("gnu.tar"));
  const std::string cut = scratch.write("cut.tar", whole.substr(0, whole.find("PNG\r\n") + 20));
  const auto tar = TarFile::open(cut);
  REQUIRE(tar.ok());
  CHECK((*tar)->fault() == "member 'a.png' is cut off: the archive ends in it");
  const auto pictures = PictureRoot::create(cut, nullptr);
  REQUIRE_FALSE(pictures.ok());
  CHECK(pictures.error().message.find("cut.tar is a tar archive that cannot be read: member 'a.png'") !=
        std::string::npos);
}

TEST_CASE("A picture is taken from an archive, a folder or the record itself, and its stamp follows the file") {
  const std::string picture = fixture::contents(shard("picture.png"));
  const auto archive = PictureRoot::create(shard("gnu.tar"), nullptr);
  REQUIRE(archive.ok());
  CHECK((*archive)->open("a.png")->bytes() == picture);
  CHECK((*archive)->open(".\\a.png").ok());
  const auto gone = (*archive)->open("gone.png");
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().message.find("'gone.png' is not in the archive") != std::string::npos);
  CHECK_FALSE((*archive)->open("https://x/a.png").ok());
  const fixture::Scratch scratch;
  const std::string file = scratch.write("sub/a.png", picture);
  const auto folder = PictureRoot::create(scratch.path("."), nullptr);
  REQUIRE(folder.ok());
  CHECK((*folder)->open("sub\\a.png")->bytes() == picture);
  CHECK((*folder)->open(file)->bytes() == picture);
  const uint64_t before = (*folder)->stamp("sub/a.png");
  CHECK(before != 0);
  CHECK((*folder)->stamp("sub/b.png") == 0);
  scratch.write("sub/a.png", picture + "x");
  CHECK((*folder)->stamp("sub/a.png") != before);
  CHECK_FALSE(PictureRoot::create(file, nullptr).ok());
}

}  // namespace
}  // namespace troupe
