// Setups that can be simulated and trained, drawn from a seed.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "schedules/setup/setup.h"

namespace stagewright {

inline Setup randomSetup(std::mt19937& random)
{
    const auto chance = [&random](int of) { return random() % static_cast<unsigned>(of) == 0; };
    const auto one = [&random](std::initializer_list<const char*> words) {
        return std::string(*(words.begin() + random() % words.size()));
    };
    Setup s;
    s.schedules = {one({"1f1b", "gpipe", "zb-h1", "bfs", "interleaved-1f1b", "zbv", "dualpipev"})};
    s.ranks = chance(3) ? 4 : 2;
    s.microbatches = chance(2) ? 4 : 8;
    if (chance(4)) s.chunks = 2;
    if (chance(5)) s.overlap = "serial";
    if (chance(4)) s.recompute = one({"all", "0", "0-1"});
    s.hoist = s.recompute != "none" && chance(2);
    if (chance(3)) {
        s.sends = "rendezvous";
        s.lower = one({"grouped", "batched", "rank-parity", "pytorch"});
        if (chance(3)) s.receives = one({"posted", "blocking"});
    }
    if (chance(4)) s.channels = one({"0", "one", "2"});
    if (chance(2)) {
        s.replicas = 2;
        s.shard = one({"none", "optimizer", "gradients", "weights", "weights:by=layer", "weights:shares=2/3,1/3"});
        if (s.shard.starts_with("weights") && chance(2)) s.gather = one({"microbatch", "batch:prefetch=1"});
        if (chance(2)) s.reduce = one({"overlapped", "microbatch", "overlapped:bucket=4kB"});
        if (chance(4)) s.speed = "1,0.5";
        if (chance(5)) s.replicaBatch = "4,8";
    }
    if (chance(3)) s.costs = one({"F=1,I=2,W=0.5", "F=2,B=3", "analytic:gpt-1.5b@a100", "UNSHARD=0.5,REDUCE_GRAD=2"});
    if (chance(3)) s.comm = static_cast<double>(1 + random() % 8) / 8; // forwards of a rank
    if (chance(4)) s.perturb = {one({"rank=1:1.5", "link=0-1:0.5", "launch=0:0.25", "jitter=0.05"})};
    if (chance(3)) s.seed = random() % 100;
    if (chance(4)) s.steps = 3;
    return s;
}

} // namespace stagewright
