#include "schedules/planner/examples.h"

#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "schedules/planner/tier_problems.h"

namespace stagewright {

namespace {

using Json = nlohmann::ordered_json;

// Ten layers, the last with the vocabulary; more devices are faster by less than their number, and slower between
// hosts.
Json layersOnSubmeshes()
{
    constexpr int layers = 10, hosts = 2, perHost = 4;
    constexpr int meshes[][2] = {{1, 1}, {1, 2}, {1, 4}, {2, 4}};
    Json submeshes = Json::array(), stages = Json::array();
    for (std::size_t mesh = 0; mesh < std::size(meshes); ++mesh) {
        submeshes.push_back({meshes[mesh][0], meshes[mesh][1]});
        const int devices = meshes[mesh][0] * meshes[mesh][1];
        for (int first = 0; first < layers; ++first)
            for (int last = first; last < layers; ++last) {
                const int work = 100 * (last - first + 1) + (last == layers - 1 ? 260 : 0);
                const double time = work / std::pow(devices, 0.72) + (meshes[mesh][0] > 1 ? 60 : 0);
                const int room = 14 * devices / (last - first + 1) - 4;
                stages.push_back({first, last, mesh, 0, static_cast<int>(std::lround(time)), room > 64 ? 64 : room});
            }
    }
    return {{"layers", layers},   {"hosts", hosts},         {"per_host", perHost},
            {"microbatches", 16}, {"submeshes", submeshes}, {"stages", stages}};
}

// Eight operators, each cut by batch, by columns or by rows; resharding costs where neighbours differ.
Json operatorStrategies()
{
    const Json cost = {{40, 12, 14}, {30, 8, 30},  {26, 9, 22}, {30, 24, 8},
                       {44, 10, 30}, {44, 30, 10}, {6, 18, 18}, {60, 14, 20}};
    Json edges = Json::array();
    const int links[][2] = {{0, 1}, {1, 2}, {2, 3}, {0, 6}, {3, 6}, {6, 4}, {4, 5}, {5, 7}};
    for (const auto& link : links) {
        Json costs = Json::array();
        for (int from = 0; from < 3; ++from)
            for (int to = 0; to < 3; ++to) costs.push_back(from == to ? 0 : from == 1 && to == 2 ? 2 : 16);
        edges.push_back({link[0], link[1], costs});
    }
    return {{"cost", cost}, {"edges", edges}};
}

Json modelGraph()
{
    Json nodes = Json::array();
    nodes.push_back({{"name", "embed"}, {"cost", 4}, {"inputs", {"tokens"}}});
    std::string before = "embed";
    for (int block = 0; block < 4; ++block) {
        const std::string n = std::to_string(block);
        nodes.push_back({{"name", "norm" + n}, {"cost", 1}, {"inputs", {before}}});
        nodes.push_back({{"name", "attn" + n}, {"cost", 8}, {"inputs", {"norm" + n}}});
        nodes.push_back({{"name", "sum" + n}, {"cost", 1}, {"inputs", {"attn" + n, before}}});
        nodes.push_back({{"name", "mlp" + n}, {"cost", 16}, {"inputs", {"sum" + n}}});
        nodes.push_back({{"name", "out" + n}, {"cost", 1}, {"inputs", {"mlp" + n, "sum" + n}}});
        before = "out" + n;
    }
    nodes.push_back({{"name", "head"}, {"cost", 20}, {"inputs", {before}}});
    return {{"kind", "graph"}, {"p", 4}, {"nodes", nodes}};
}

} // namespace

nlohmann::ordered_json exampleInput(std::string_view name)
{
    if (name == "alpa_inter") return layersOnSubmeshes();
    if (name == "intra_ilp") return operatorStrategies();
    if (name == "merak") return modelGraph();
    if (name == "merak:recompute")
        return {{"kind", "recompute"},
                {"m", 8},
                {"layers", {6, 6, 6, 6}},
                {"static", {200, 200, 200, 200}},
                {"cap", {600, 600, 600, 600}},
                {"A", 34},
                {"a", 2},
                {"F", 10},
                {"B", 20}};
    if (name == "merak:step") return {{"kind", "step"}, {"p", 4}, {"m", 8}, {"F", 1}, {"R", 1}, {"B", 2}};
    if (name == "merak:subpipe")
        return {{"kind", "subpipe"}, {"segments", 8}, {"compute", 10}, {"allreduce", 10}, {"loss", 1.05}};
    if (name == "mlp_sharding")
        return {{"b", 2048}, {"h", 1024}, {"f", 4096}, {"n", 8}, {"alpha", 1}, {"beta", 1}, {"flop_cost", 0.1}};
    if (name == "reshard")
        return {{"shape", {1024, 1024, 512}},
                {"src", {2, 4}},
                {"src_layout", {{1}, Json::array(), Json::array()}},
                {"dst", {2, 4}},
                {"dst_layout", {{0}, Json::array(), Json::array()}}};
    if (name == "layerwise") {
        Json time = Json::array(), memory = Json::array();
        for (int layer = 0; layer < 12; ++layer) {
            time.push_back({30 + layer % 3, 34 + layer % 3, 41});
            memory.push_back({34 + 4 * (layer % 2), 15, 3});
        }
        return {{"time", time}, {"memory", memory}, {"change", {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}}, {"budget", 250}};
    }
    if (name == "cephalo") { // the authors' stored one: GPT 2.7B, ms of a layer, GB
        const auto gpu = [](double f1, double f0, double b1, double b0, double cap) {
            return Json{{"f1", f1}, {"f0", f0}, {"b1", b1}, {"b0", b0}, {"a1", 0.3709}, {"a0", 0.7496}, {"cap", cap}};
        };
        const Json l4 = gpu(7.415036, 1.181504, 10.94616, 4.842824, 22.5);
        const Json a6000 = gpu(2.835478, 0.664214, 4.22101, 2.404014, 47.99);
        const Json p40 = gpu(15.637328, 4.132932, 28.016862, 1.877118, 22.5);
        return {{"batch", 64},         {"state", 44.32994304}, {"gap", 10}, {"gpus", {l4, l4, a6000, p40}},
                {"rule", "aggregate"}, {"fraction", 0.75}};
    }
    if (name == "comet")
        return {{"model", {25600, 128, 160, 2048}},
                {"devices", 1024},
                {"batch", 1024},
                {"per_host", 8},
                {"peak", 312e12},
                {"efficiency", 0.7},
                {"capacity", 80e9},
                {"bandwidth", 2039e9},
                {"inside", 300e9},
                {"between", 31.25e9},
                {"splits", {8, 16, 32, 64, 128, 256}},
                {"prices", {{"device", 20000}, {"memory", 110}, {"network", 60}}}};
    if (name == "jigsaw")
        return {{"gpus", 4},
                {"jobs", {{150, 200, 250, 300}, {150, 200, 250, 300}, {60, 90, 120}}},
                {"full", {{300, 300, 300, 300}, {300, 300, 300, 300}, {120, 120, 120}}}};
    return tierExample(name);
}

} // namespace stagewright
