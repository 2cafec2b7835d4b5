#pragma once

#include <chrono>

/// Wall time of training steps, so that what a host waits for between two steps is counted too.
namespace troupe {

struct StepTime {
  double seconds = 0;             // from the end of the step before, to the end of this one
  double input_wait_seconds = 0;  // of these: until every host had its input
};

/// A step lasts from the end of the one before it; what is done between steps and is none (an evaluation, a checkpoint)
/// ends with begin(). One thread.
class StepClock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit StepClock(Time now) : begin_(now), input_(now) {}

  /// What went before is no part of the next step.
  void begin(Time now) { begin_ = input_ = now; }
  /// The step's input is here and it may run.
  void input_came(Time now) { input_ = now; }
  /// The step is over and the next begins.
  StepTime end(Time now) {
    const StepTime time{seconds(begin_, now), seconds(begin_, input_)};
    begin(now);
    return time;
  }

 private:
  static double seconds(Time from, Time to) { return std::chrono::duration<double>(to - from).count(); }
  Time begin_, input_;
};

}  // namespace troupe
