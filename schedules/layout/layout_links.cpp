#include "schedules/layout/layout_links.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "schedules/planner/mesh_resharding.h"

namespace stagewright {

namespace {

constexpr int mostCells = 1024, mostHosts = 16;

// How the activations of a microbatch are cut: by parts of its samples, and of their width where sequences are cut.
struct Cut {
    int replicas = 1, width = 1;
    explicit Cut(const LayoutStage& stage) : replicas(stage.replicas()), width(stage.sequence ? stage.tensor : 1) {}
    bool operator==(const Cut&) const = default;
};

// Hosts of the stage's devices that have, or need, this cell of so many parts; each with how many devices do.
std::map<int, int> holders(const LayoutStage& stage, const Cluster& cluster, int sample, int samples, int width,
                           int widths)
{
    const Cut cut(stage);
    std::map<int, int> out;
    for (std::size_t i = 0; i < stage.devices.size(); ++i) {
        const int replica = static_cast<int>(i) / stage.tensor, share = static_cast<int>(i) % stage.tensor;
        if (replica == sample * cut.replicas / samples && (cut.width == 1 || share == width * cut.width / widths))
            ++out[stage.devices[i] / cluster.perHost];
    }
    return out;
}

std::optional<Resharding> reshardingOf(const LayoutStage& from, const LayoutStage& to, const Layout& layout,
                                       const ModelPreset& model, const Cluster& cluster, const StepConstants& constants)
{
    const Cut one(from), other(to);
    const int samples = std::lcm(one.replicas, other.replicas), widths = std::lcm(one.width, other.width);
    if (samples > mostCells / widths) return std::nullopt;
    const double whole = 2.0 * layout.samples * model.sequence * model.hidden; // bytes
    const auto cell = static_cast<std::int64_t>(std::max(1.0, whole / samples / widths));
    std::map<int, int> senders, receivers; // hosts: their numbers in the plan
    std::vector<UnitTask> tasks;
    double local = 0; // of the busiest host's copies
    std::map<int, double> copied;
    for (int sample = 0; sample < samples; ++sample)
        for (int width = 0; width < widths; ++width) {
            const auto have = holders(from, cluster, sample, samples, width, widths);
            const auto need = holders(to, cluster, sample, samples, width, widths);
            UnitTask task;
            task.elements = cell;
            for (const auto& [host, count] : have)
                task.senders.push_back(senders.try_emplace(host, static_cast<int>(senders.size())).first->second);
            for (const auto& [host, count] : need) {
                if (have.contains(host)) {
                    local = std::max(local, copied[host] += static_cast<double>(cell));
                    continue;
                }
                task.receivers.push_back(receivers.try_emplace(host, static_cast<int>(receivers.size())).first->second);
                task.devices.push_back(count);
            }
            if (!task.receivers.empty()) tasks.push_back(std::move(task));
        }
    if (senders.size() > mostHosts || receivers.size() > mostHosts) return std::nullopt;
    Resharding out;
    out.tasks = static_cast<int>(tasks.size());
    const double within = linkOf(cluster, constants, 1).bytesPerSecond;
    out.bound = out.seconds = within > 0 ? local / within : 0;
    if (tasks.empty()) return out;
    const auto plan = planTasks(std::move(tasks), static_cast<int>(senders.size()), static_cast<int>(receivers.size()));
    if (!plan) return std::nullopt;
    // all cards of a host together
    const double host = linkOf(cluster, constants, cluster.perHost + 1).bytesPerSecond * cluster.perHost;
    if (!(host > 0)) return std::nullopt;
    const double bound = static_cast<double>(plan->bound.numerator) / static_cast<double>(plan->bound.denominator);
    out.seconds = std::max(out.seconds, static_cast<double>(plan->best) / host);
    out.bound = std::max(out.bound, bound / host);
    return out;
}

// Between ranks on hosts, each of at most `width` devices of so many in all: cards where there are several hosts.
Links hostLinks(const std::vector<int>& hosts, std::size_t width, int devices, const Cluster& cluster,
                const StepConstants& constants)
{
    Links out;
    out.all = linkOf(cluster, constants, devices);
    std::map<int, int> ranksOf;
    for (const int host : hosts) ++ranksOf[host];
    if (ranksOf.size() < 2) return out;
    int most = 1;
    for (const auto& [host, count] : ranksOf) most = std::max(most, count);
    // the ranks of a host share its cards, or each has some of its own
    const int groups = std::clamp(most, 1, std::max(1, cluster.cards));
    const auto wide = static_cast<double>(std::min<std::size_t>(width, static_cast<std::size_t>(cluster.perHost)));
    const Link between = linkOf(cluster, constants, cluster.perHost + 1);
    const double card = between.bytesPerSecond / std::min(1.0, static_cast<double>(cluster.cards) / cluster.perHost);
    out.cards.hosts = hosts;
    out.cards.perHost = groups;
    out.cards.link = {between.latency, card * std::min(1.0, static_cast<double>(cluster.cards) / groups / wide)};
    out.all = linkOf(cluster, constants, 1);
    return out;
}

} // namespace

std::vector<Resharding> reshardings(const Layout& layout, const ModelPreset& model, const Cluster& cluster,
                                    const StepConstants& constants)
{
    std::vector<Resharding> out;
    for (std::size_t k = 0; k + 1 < layout.stages.size(); ++k) {
        const LayoutStage &below = layout.stages[k], &above = layout.stages[k + 1];
        if (Cut(below) == Cut(above) && below.tensor == above.tensor) continue;
        for (const bool back : {false, true})
            if (auto one =
                    reshardingOf(back ? above : below, back ? below : above, layout, model, cluster, constants)) {
                one->stage = static_cast<int>(k);
                one->back = back;
                out.push_back(*one);
            }
    }
    return out;
}

Result<Links> clusterLinks(const Schedule& schedule, const Cluster& cluster, const StepConstants& constants)
{
    if (schedule.ranks > cluster.devices)
        return fail(ErrorCode::Usage, fmt::format("{} ranks on {} devices", schedule.ranks, cluster.devices),
                    "name a cluster with a device for each rank");
    std::vector<int> hosts;
    for (int rank = 0; rank < schedule.ranks; ++rank)
        hosts.push_back((schedule.pipelineRankOf(rank) * schedule.replicas + schedule.replicaOf(rank)) /
                        cluster.perHost);
    return hostLinks(hosts, 1, schedule.ranks, cluster, constants);
}

Links layoutLinks(const Schedule& schedule, const Layout& layout, const ModelPreset& model, const Cluster& cluster,
                  const StepConstants& constants)
{
    int devices = 0;
    std::size_t width = 1;
    std::vector<int> hosts(static_cast<std::size_t>(layout.ranks), 0);
    for (std::size_t k = 0; k < layout.stages.size(); ++k) {
        const LayoutStage& stage = layout.stages[k];
        devices = std::max(devices, *std::max_element(stage.devices.begin(), stage.devices.end()) + 1);
        hosts[static_cast<std::size_t>(schedule.placement.rankOf(static_cast<int>(k), 0))] =
            stage.devices.front() / cluster.perHost;
        width = std::max(width, stage.devices.size());
    }
    Links out = hostLinks(hosts, width, devices, cluster, constants);
    for (const Resharding& one : reshardings(layout, model, cluster, constants)) {
        const int below = schedule.placement.rankOf(one.stage, 0), above = schedule.placement.rankOf(one.stage + 1, 0);
        if (below == above || one.seconds <= 0) continue;
        const std::pair<int, int> way = one.back ? std::pair(above, below) : std::pair(below, above);
        const double bytes = messageBytes(model, wayOf(layout, one.stage));
        Link& link = out.overrides.try_emplace(way, Link{out.of(way.first, way.second).latency, 0}).first->second;
        const double rate = bytes / one.seconds;
        link.bytesPerSecond = link.bytesPerSecond > 0 ? std::min(link.bytesPerSecond, rate) : rate;
    }
    return out;
}

} // namespace stagewright
