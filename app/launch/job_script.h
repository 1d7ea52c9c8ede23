// Scripts of jobs that users start themselves, beside those of queues (batch_script.h): a script that each node runs,
// and objects for Kubernetes. Text that people read, keep and edit.
#pragma once

#include <string>
#include <vector>

#include "app/launch/python_ranks.h"

namespace stagewright {

// Started on every node with the first node's name, it starts that node's ranks.
struct NodeScript {
    std::string name;                     // of the rendezvous
    std::vector<std::string> about;       // comment lines
    std::vector<std::string> environment; // NAME=VALUE
    std::vector<std::string> container;   // words in front of the interpreter
    PythonRanks ranks;
};
std::string toText(const NodeScript& script);

// An indexed Job with a pod for each node, and the headless Service by which they find the first one.
struct PodJob {
    std::string name; // [a-z0-9-]+, at most 63
    std::string image;
    std::string folder;                   // absolute, the job's in each pod
    std::string claim;                    // the volume claim that has it
    std::vector<std::string> about;       // comment lines
    std::vector<std::string> environment; // NAME=VALUE
    std::vector<std::string> command;     // of each pod
    int nodes = 1;
    int gpus = 0; // of each pod
    int port = 0; // of the rendezvous; 0: one pod, and no Service
};
std::string toText(const PodJob& job);
std::string firstPod(const std::string& name); // the address of the first pod of a PodJob

} // namespace stagewright
