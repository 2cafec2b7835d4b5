#include "driver/supervision/blame.h"

#include <algorithm>
#include <csignal>
#include <cstring>

namespace troupe::driver {
namespace {

bool points_at_a_peer(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kAborted || code == ErrorCode::kCancelled ||
         code == ErrorCode::kDeadlineExceeded;
}

std::string signal_text(int signal, const std::string& said) {
  const char* name = ::sigabbrev_np(signal);
  std::string text = "was killed by signal " + std::to_string(signal);
  if (name) text += std::string(" (SIG") + name + ")";
  if (signal == SIGKILL) text += "; if nobody sent it, the machine ran out of memory";
  if (!said.empty()) return text + ": " + said;
  if (signal == SIGBUS) text += "; if its log names a file, that one became shorter while it was read";
  return text;
}

}  // namespace

std::string HostPlace::roles() const {
  std::string text;
  for (const auto& [group, rank] : actors) text += (text.empty() ? "" : " and ") + group + "/" + std::to_string(rank);
  return text.empty() ? "no actor" : text;
}

Blame::Evidence& Blame::evidence_of(int slot, Time now) {
  auto [at, fresh] = evidence_.try_emplace(slot);
  if (fresh) at->second.time = now;
  return at->second;
}

void Blame::host_error(int slot, Error error, Time now) {
  Evidence& evidence = evidence_of(slot, now);
  if (evidence.error || evidence.rank == Class::kDeath) return;
  evidence.rank = points_at_a_peer(error.code) ? Class::kPointer : Class::kOwnError;
  evidence.error = std::move(error);
}

void Blame::host_exited(int slot, HostExit exit, Time now) {
  Evidence& evidence = evidence_of(slot, now);
  if (evidence.exit) return;
  // An exit behind an error that the host reported itself is that error's consequence.
  if (!evidence.error) evidence.rank = Class::kDeath;
  evidence.exit = std::move(exit);
}

void Blame::link_lost(int slot, Time now) { evidence_of(slot, now); }

void Blame::worker_lost(const std::string& node, Time now) {
  for (size_t slot = 0; slot < places_.size(); ++slot) {
    if (places_[slot].node != node) continue;
    Evidence& evidence = evidence_of(static_cast<int>(slot), now);
    if (!evidence.exit && !evidence.error) {
      evidence.lost_node = node;
      evidence.rank = Class::kDeath;
    }
  }
}

std::optional<Blame::Time> Blame::due() const {
  std::optional<Time> due;
  for (const auto& [slot, evidence] : evidence_) {
    const Time mine = evidence.time + (evidence.rank == Class::kDeath ? kGatherAfterDeath : kGather);
    if (!due || mine < *due) due = mine;
  }
  return due;
}

bool Blame::complete() const { return evidence_.size() == places_.size(); }

std::string Blame::describe(int slot, const Evidence& evidence) const {
  const HostPlace& place = places_[static_cast<size_t>(slot)];
  std::string what = "host of " + place.roles();
  if (evidence.exit && evidence.exit->page_valid && !evidence.exit->group.empty())
    what = "rank " + std::to_string(evidence.exit->rank) + " of group " + evidence.exit->group;
  what += " (node " + place.node + ", slot " + std::to_string(place.index);
  if (evidence.exit) what += ", pid " + std::to_string(evidence.exit->pid);
  what += ") ";
  if (!evidence.lost_node.empty()) {
    what += "was lost with its worker: node " + evidence.lost_node + " no longer answers";
  } else if (evidence.error) {
    what += "failed";
  } else if (evidence.exit && evidence.exit->stopped_ms > 0) {
    what += "stood still for " + std::to_string(evidence.exit->stopped_ms / 1000) +
            " s (stopped by SIGSTOP or its like) and was ended, since its peers waited for it";
  } else if (evidence.exit && evidence.exit->signal != 0) {
    what += signal_text(evidence.exit->signal, evidence.exit->said);
  } else if (evidence.exit) {
    what += "exited with status " + std::to_string(evidence.exit->exit_code) + " before its work was done";
  } else {
    what += "lost its connection to the driver";
  }
  if (evidence.exit && evidence.exit->page_valid) {
    what += evidence.error ? " in" : "; it was in";
    what += " step " + std::to_string(evidence.exit->step);
    if (!evidence.exit->instruction.empty()) what += ", instruction '" + evidence.exit->instruction + "'";
  }
  return what;
}

std::string Blame::silent() const {
  std::string who;
  for (size_t slot = 0; slot < places_.size(); ++slot) {
    if (evidence_.contains(static_cast<int>(slot))) continue;
    const HostPlace& place = places_[slot];
    who += (who.empty() ? "" : ", ") + place.roles() + " (node " + place.node + ", slot " +
           std::to_string(place.index) + ")";
  }
  return who;
}

Verdict Blame::verdict() const {
  auto worse = [](const auto& a, const auto& b) {
    if (a.second.rank != b.second.rank) return a.second.rank < b.second.rank;
    return a.second.time < b.second.time;
  };
  const auto first = std::min_element(evidence_.begin(), evidence_.end(), worse);
  Verdict verdict;
  if (first == evidence_.end()) {
    verdict.kind = "driver_error";
    verdict.error = internal_error("the job failed without any evidence");
    return verdict;
  }
  const Evidence& evidence = first->second;
  verdict.slot = first->first;
  std::string message = describe(first->first, evidence);
  if (evidence.error) {
    message += ": " + evidence.error->to_string();
    verdict.kind = evidence.rank == Class::kPointer ? "peer_lost" : "host_error";
    verdict.error = make_error(evidence.error->code, "");
    verdict.error.cause = std::make_shared<const Error>(*evidence.error);
  } else {
    verdict.kind = !evidence.lost_node.empty()     ? "worker_lost"
                   : !evidence.exit                ? "host_silent"
                   : evidence.exit->stopped_ms > 0 ? "host_stopped"
                   : evidence.exit->signal != 0    ? "host_killed"
                                                   : "host_exited";
    verdict.error = make_error(ErrorCode::kUnavailable, "");
  }
  if (evidence.rank == Class::kPointer && !complete()) message += "; no word from " + silent();
  message += "; log: " + places_[static_cast<size_t>(first->first)].log_path;
  verdict.error.message = std::move(message);
  verdict.error.origin = places_[static_cast<size_t>(first->first)].roles();
  return verdict;
}

}  // namespace troupe::driver
