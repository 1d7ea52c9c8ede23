#include "app/launch/job_script.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/launch/shell_words.h"

namespace stagewright {

namespace {

std::string comments(const std::vector<std::string>& lines)
{
    std::string text;
    for (const std::string& line : lines) text += line.empty() ? "#\n" : fmt::format("# {}\n", line);
    return text;
}

// A string of JSON is one of YAML, whatever is in it.
std::string quoted(const std::string& text)
{
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace

std::string toText(const NodeScript& script)
{
    std::string text = "#!/bin/sh\n" + comments(script.about);
    text +=
        fmt::format("set -eu\n"
                    "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
                    "{}port=${{2:-{}}}\n"
                    "cd \"$here\"\n",
                    script.ranks.nodes == 1
                        ? "head=${1:-localhost}\n"
                        : "[ $# -ge 1 ] || { echo \"run.sh: name the first node: run.sh NODE [PORT]\" >&2; exit 2; }\n"
                          "head=$1\n",
                    script.ranks.port);
    text += exportLines(script.environment);
    const std::string container = shellCommand(script.container);
    return text + fmt::format("exec {}{}{}\n", container, container.empty() ? "" : " ",
                              torchrunText(script.ranks, shellWord(script.name), "\"$head:$port\""));
}

std::string firstPod(const std::string& name) { return fmt::format("{0}-0.{0}", name); }

std::string toText(const PodJob& job)
{
    std::string text = comments(job.about);
    if (job.port > 0)
        text += fmt::format(R"(apiVersion: v1
kind: Service
metadata:
  name: {0}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    job-name: {0}
  ports:
    - name: rendezvous
      port: {1}
---
)",
                            job.name, job.port);
    text += fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata:
  name: {0}
spec:
  completionMode: Indexed
  completions: {1}
  parallelism: {1}
  backoffLimit: 0
  template:
    metadata:
      labels:
        app: {0}
    spec:
{2}      restartPolicy: Never
      containers:
        - name: ranks
          image: {3}
          workingDir: {4}
          command:
)",
                        job.name, job.nodes, job.port > 0 ? fmt::format("      subdomain: {}\n", job.name) : "",
                        quoted(job.image), quoted(job.folder));
    for (const std::string& word : job.command) text += fmt::format("            - {}\n", quoted(word));
    if (!job.environment.empty()) text += "          env:\n";
    for (const std::string& variable : job.environment) {
        const std::size_t sign = variable.find('=');
        text += fmt::format("            - name: {}\n              value: {}\n", variable.substr(0, sign),
                            quoted(variable.substr(sign + 1)));
    }
    if (job.gpus > 0)
        text += fmt::format("          resources:\n            limits:\n              nvidia.com/gpu: {}\n", job.gpus);
    if (job.port > 0) text += fmt::format("          ports:\n            - containerPort: {}\n", job.port);
    text += fmt::format(R"(          volumeMounts:
            - name: job
              mountPath: {}
            - name: shared-memory
              mountPath: /dev/shm
      volumes:
        - name: job
          persistentVolumeClaim:
            claimName: {}
        - name: shared-memory
          emptyDir:
            medium: Memory
)",
                        quoted(job.folder), quoted(job.claim));
    return text;
}

} // namespace stagewright
