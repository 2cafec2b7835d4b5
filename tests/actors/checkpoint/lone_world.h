#pragma once

#include "transport/world/world.h"

namespace troupe::testing {

/// A rank's position without connections: for calls that only ask who they are.
class LoneWorld final : public World {
 public:
  LoneWorld(const Mesh& mesh, int rank) : mesh_(mesh), rank_(rank) {}
  const Mesh& mesh() const override { return mesh_; }
  int rank() const override { return rank_; }
  Communicator& over(AxisSet axes) override {
    throw ErrorException(internal_error("no communicator over " + axes.to_string()));
  }
  Communicator& posted_over(AxisSet axes) override { return over(axes); }
  int64_t post(std::function<void()> work) override {
    work();
    return 0;
  }
  void wait_posted(int64_t) override {}
  void abort() override {}

 private:
  Mesh mesh_;
  int rank_;
};

}  // namespace troupe::testing
