#include "base/placement/placement.h"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

JobSpec spec_of(int vision, int text, PlacementKind kind) {
  JobSpec s;
  s.groups.resize(2);
  s.groups[0].name = "vision";
  s.groups[0].mesh.set(Axis::kSp, vision);
  s.groups[1].name = "text";
  s.groups[1].mesh.set(Axis::kTp, text);
  s.placement.kind = kind;
  s.device = "cpu";
  return s;
}

Manifest two_nodes() {
  auto m = parse_manifest(
      "launch: local\nnodes: [{name: a, devices: {cpu: 4}}, {name: b, devices: {cpu: 2, threads: 3}}]\n", "c.yaml", {});
  if (!m.ok()) FAIL(m.error().message);
  return *m;
}

Result<Placement> place(const JobSpec& spec, const Manifest* manifest = nullptr, Machine machine = {0, 8}) {
  const auto slots = available_slots(spec, manifest, machine);
  if (!slots.ok()) return slots.error();
  return place_groups(spec, *slots);
}

Result<Placement> place_lists(int vision, int text, std::vector<std::string> vision_slots,
                              std::vector<std::string> text_slots) {
  JobSpec s = spec_of(vision, text, PlacementKind::kExplicit);
  s.placement.slots = {{"vision", std::move(vision_slots)}, {"text", std::move(text_slots)}};
  const Manifest m = two_nodes();
  return place(s, &m);
}

using Slots = std::vector<int>;

}  // namespace

TEST_CASE("colocated groups share the first slots") {
  const auto p = place(spec_of(3, 2, PlacementKind::kColocated));
  REQUIRE(p.ok());
  CHECK(p->slots.size() == 3);
  CHECK(p->group_slots[0] == Slots{0, 1, 2});
  CHECK(p->group_slots[1] == Slots{0, 1});
  CHECK(p->slots[0].threads == 2);
  CHECK(p->slots[2].name() == "local:2");
}

TEST_CASE("disjoint groups take slots one after the other") {
  const auto p = place(spec_of(3, 2, PlacementKind::kDisjoint));
  REQUIRE(p.ok());
  CHECK(p->slots.size() == 5);
  CHECK(p->group_slots[1] == Slots{3, 4});
  CHECK(p->slots[0].threads == 1);
}

TEST_CASE("lists place ranks where they say, overlapping in part, and unused slots are left out") {
  const auto p = place_lists(3, 2, {"a:1-3"}, {"a:3", "b:1"});
  if (!p.ok()) FAIL(p.error().message);
  REQUIRE(p->slots.size() == 4);
  CHECK(p->slots[0].name() == "a:1");
  CHECK(p->slots[3].name() == "b:1");
  CHECK(p->slots[3].threads == 3);
  CHECK(p->group_slots[0] == Slots{0, 1, 2});
  CHECK(p->group_slots[1] == Slots{2, 3});
  const auto star = place_lists(4, 2, {"a:*"}, {"b:*"});
  REQUIRE(star.ok());
  CHECK(star->group_slots[1] == Slots{4, 5});
  const auto reversed = place_lists(2, 2, {"a:1", "a:0"}, {"b:*"});
  REQUIRE(reversed.ok());
  CHECK(reversed->group_slots[0] == Slots{1, 0});
}

TEST_CASE("placements that cannot be are refused with numbers") {
  const Manifest m = two_nodes();
  CHECK(place(spec_of(4, 3, PlacementKind::kDisjoint), &m).error().message ==
        "key 'placement': disjoint asks for 7 slots (vision: 4, text: 3), 6 exist");
  CHECK(place(spec_of(7, 3, PlacementKind::kColocated), &m).error().message ==
        "key 'placement': colocated asks for 7 slots (vision: 7, text: 3), 6 exist");
  CHECK(place_lists(3, 2, {"a:0-1"}, {"b:*"}).error().message ==
        "key 'placement.vision': lists 2 slots, the group's mesh (sp=3) has 3 ranks");
  CHECK(place_lists(2, 2, {"a:0", "a:0"}, {"b:*"}).error().message ==
        "key 'placement.vision': slot a:0 occurs twice; valid: each slot once in a group (different groups may share "
        "one)");
  CHECK(place_lists(1, 2, {"c:0"}, {"b:*"})
            .error()
            .message.find("key 'placement.vision': value 'c:0': unknown node 'c'") == 0);
  CHECK(place_lists(1, 2, {"a:4"}, {"b:*"}).error().message ==
        "key 'placement.vision': value 'a:4': node 'a' has no slot 4; valid: 0 to 3");
  CHECK(place_lists(1, 2, {"a:x"}, {"b:*"}).error().message ==
        "key 'placement.vision': value 'a:x' is not valid; valid: NODE:NUMBER, NODE:FIRST-LAST or NODE:*");
}

TEST_CASE("without a manifest the machine's GPUs are the slots, or as many CPU slots as are asked for") {
  JobSpec s = spec_of(2, 2, PlacementKind::kDisjoint);
  s.device = "auto";
  const auto gpus = place(s, nullptr, {4, 8});
  REQUIRE(gpus.ok());
  CHECK(gpus->slots[3].device == "cuda:3");
  CHECK(place(s, nullptr, {2, 8}).error().message ==
        "key 'placement': disjoint asks for 4 slots (vision: 2, text: 2), 2 exist");
  CHECK(place(s, nullptr, {0, 8})->slots[3].device == "cpu");
  s.device = "cuda";
  CHECK(place(s, nullptr, {0, 8}).error().message ==
        "key 'device': value 'cuda', but this machine has no GPU (there is no /dev/nvidia0 or higher); valid: auto, "
        "cpu, or "
        "--cluster FILE");
  s.device = "cpu";
  s.threads = 5;
  CHECK(place(s, nullptr, {4, 8})->slots[0].threads == 5);
  CHECK(this_machine().cores >= 1);
}

TEST_CASE("the memory of this machine is what is available, within a control group's limit") {
  const std::string text = "MemTotal:  2000 kB\nMemFree: 10 kB\nMemAvailable:    1000 kB\nSwapFree:         24 kB\n";
  CHECK(available_memory(text, "") == 1024 * 1024);
  CHECK(available_memory(text, "max\n") == 1024 * 1024);
  CHECK(available_memory(text, "4096\n") == 4096);
  CHECK(available_memory("SwapFree: 24 kB\n", "4096\n") == 0);
  CHECK(this_machine().memory_bytes > 0);
}

TEST_CASE("CPU slots of this machine share its memory, GPUs have their own, which is not known") {
  JobSpec s = spec_of(2, 2, PlacementKind::kDisjoint);
  const auto cpus = place(s, nullptr, {0, 8, 1 << 30});
  REQUIRE(cpus.ok());
  CHECK(cpus->slots[3].memory_bytes == 1 << 30);
  CHECK(cpus->slots[3].shares_memory);
  s.device = "cuda";
  const auto gpus = place(s, nullptr, {4, 8, 1 << 30});
  REQUIRE(gpus.ok());
  CHECK(gpus->slots[3].memory_bytes == 0);
  CHECK_FALSE(gpus->slots[3].shares_memory);
}
