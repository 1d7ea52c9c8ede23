// The queues of clusters that take batch scripts, a row each: what their lines and variables are called.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagewright {

struct BatchScript;

// How many processes a job starts, and where.
struct BatchShape {
    int nodes = 1;
    int tasks = 1;       // processes that the launcher starts, spread evenly over the nodes
    int coresOfTask = 1; // a torchrun is the parent of several ranks
    int gpusOfNode = 0;
    int tasksOfNode() const { return tasks / nodes; }
};

struct Queue {
    std::string_view name;      // of the form of `stagewright script`
    std::string_view title;     // "PBS"
    std::string_view directive; // what a line of its options starts with
    std::string_view submit;    // in front of the script's path
    std::string_view number;    // the variable that has the job's number, without the sign
    std::string_view hosts;     // a command that prints the job's nodes, the first one first
    std::string_view
        hostFile; // for mpirun: the variable that names the file with a line for each process; "": it knows
    std::string_view launcher; // of several processes, as --launcher
    // The lines' options, but for the user's own.
    std::vector<std::string> (*options)(const BatchScript& script, const BatchShape& shape);
};
const std::vector<Queue>& batchQueues();
const Queue* findQueue(std::string_view name); // nullptr: no queue's name
const Queue& slurmQueue();

} // namespace stagewright
