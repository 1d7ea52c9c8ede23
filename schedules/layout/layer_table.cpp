#include "schedules/layout/layer_table.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/foreign_json.h"
#include "schedules/base/json_input.h"
#include "schedules/base/quantity.h"
#include "schedules/layout/cluster.h"

namespace stagewright {

namespace {

constexpr std::size_t mostPoints = 64;
constexpr int mostPointSamples = 65'536, mostPointTensor = 1024;
constexpr double nanoSeconds = 1e-9;
constexpr std::array keptKinds{KeptActivations::All, KeptActivations::Selective, KeptActivations::Inputs};
using Kind = ModelLayer::Kind;

tl::unexpected<Error> notATable(std::string what)
{
    return fail(ErrorCode::Unreadable, std::move(what),
                "write {\"model\": \"layers=…\", \"layers\": [{\"count\": …, \"forward_ns\": …, \"input_grad_ns\": …, "
                "\"weight_grad_ns\": …, \"at\": [{\"microbatch_size\": …, \"tensor\": …}]}]} (docs/formats.md)");
}

std::size_t placeOf(KeptActivations kept) { return static_cast<std::size_t>(kept); }

// One of "at", or the file itself, of which only the microbatch and the tensor degree are read.
LayerPoint placeAt(JsonInput& in, const LayerPoint& usual)
{
    LayerPoint out;
    out.samples = in.get<int>("microbatch_size", usual.samples);
    out.tensor = in.get<int>("tensor", usual.tensor);
    for (const auto& [key, value, most] : {std::tuple{"microbatch_size", out.samples, mostPointSamples},
                                           std::tuple{"tensor", out.tensor, mostPointTensor}})
        if (value < 1 || value > most) in.wrong(fmt::format("{} is 1 to {}, not {}", key, most, value));
    return out;
}

LayerPoint pointAt(JsonInput& in, const LayerPoint& usual)
{
    LayerPoint out = placeAt(in, usual);
    const auto number = [&](const char* key) {
        if (!in.has(key)) return -1.0;
        const auto value = in.get<std::int64_t>(key);
        if (value < 0 || value > std::int64_t(1) << 50) in.wrong(fmt::format("{} is 0 to 2^50, not {}", key, value));
        return static_cast<double>(value);
    };
    const auto name = in.get<std::string>("recompute", std::string("none"));
    const auto kept = keptNamed(name);
    if (!kept) in.wrong(fmt::format("recompute is none, selective or full, not '{}'", name.substr(0, 40)));
    const double forward = number("forward_ns"), input = number("input_grad_ns"), weight = number("weight_grad_ns"),
                 bytes = number("activation_bytes"), again = number("recompute_ns");
    const int times = (forward >= 0 ? 1 : 0) + (input >= 0 ? 1 : 0) + (weight >= 0 ? 1 : 0);
    if (times != 0 && times != 3)
        in.wrong("of forward_ns, input_grad_ns and weight_grad_ns all are needed, or none");
    else if (times == 0 && bytes < 0 && again < 0)
        in.wrong("neither times nor activation_bytes nor recompute_ns are in it");
    else if (again >= 0 && kept == KeptActivations::All)
        in.wrong("recompute_ns is of recompute selective or full");
    if (!kept) return out;
    if (times == 3) out.seconds = {forward * nanoSeconds, input * nanoSeconds, weight * nanoSeconds};
    out.kept[placeOf(*kept)] = bytes;
    out.again[placeOf(*kept)] = again < 0 ? -1 : again * nanoSeconds;
    return out;
}

// The known point that is nearest by factors of samples and devices; null: there is none.
template <typename Known>
const LayerPoint* nearestPoint(const TableLayer& layer, const LayerPoint& to, const Known& known)
{
    const LayerPoint* best = nullptr;
    double least = INFINITY;
    for (const LayerPoint& one : layer.points) {
        const double distance = std::abs(std::log(static_cast<double>(one.samples) / to.samples)) +
                                std::abs(std::log(static_cast<double>(one.tensor) / to.tensor));
        if (!known(one) || distance >= least) continue;
        best = &one;
        least = distance;
    }
    return best;
}

class TableReader { // ratios to formulas without measured layers
public:
    TableReader(const LayerTable& table, const ModelPreset& model, const Cluster& cluster,
                const StepConstants& constants)
        : m_table(table), m_model(model), m_cluster(cluster), m_constants(constants)
    {
    }

    MeasuredRatios at(const LayerPoint& point) const
    {
        MeasuredRatios out;
        out.samples = point.samples;
        out.tensor = point.tensor;
        out.perOp = m_table.perOp;
        bool head = false;
        PassRatios heads{0, 0, 0};
        for (const TableLayer& layer : m_table.layers) {
            const LayerPoint& near = *nearestPoint(layer, point, [](const LayerPoint& one) { return one.timed(); });
            const Parallelism way = wayAt(near, KeptActivations::All);
            const auto over = [&](double unit) {
                return PassRatios{near.seconds.forward / unit, near.seconds.input / unit, near.seconds.weight / unit};
            };
            if (layer.kind == Kind::Embedding) {
                add(out.embedding, over(static_cast<double>(near.samples) / near.tensor));
            } else if (layer.kind != Kind::Block) {
                add(heads, over(headSeconds(m_model, m_cluster, way, m_constants)));
                head = true;
            } else if (static_cast<int>(out.layers.size()) < m_model.layers) {
                out.layers.push_back(over(layerFigures(m_model, m_cluster, way, m_constants).alone));
                out.kept.push_back(keptAt(layer, point, out.layers.back().forward));
            }
        }
        if (head) out.head = heads;
        setMeans(out);
        return out;
    }

private:
    static Parallelism wayAt(const LayerPoint& point, KeptActivations kept)
    {
        Parallelism out;
        out.samples = point.samples;
        out.tensor = point.tensor;
        out.kept = kept;
        out.sequence = kept == KeptActivations::Selective && point.tensor > 1;
        return out;
    }

    KeptRatios keptAt(const TableLayer& layer, const LayerPoint& point, double forward) const
    {
        KeptRatios out;
        for (const KeptActivations kept : keptKinds) {
            const std::size_t i = placeOf(kept);
            const auto figuresAt = [&](const LayerPoint& near) {
                return layerFigures(m_model, m_cluster, wayAt(near, kept), m_constants);
            };
            const auto* bytes = nearestPoint(layer, point, [&](const LayerPoint& one) { return one.kept[i] >= 0; });
            if (bytes != nullptr)
                out.bytes[i] = bytes->kept[i] / figuresAt(*bytes).kept;
            else if (kept == KeptActivations::Selective)
                out.bytes[i] = out.bytes[placeOf(KeptActivations::All)];
            const auto* again = nearestPoint(layer, point, [&](const LayerPoint& one) { return one.again[i] >= 0; });
            if (again != nullptr && forward > 0) out.again[i] = again->again[i] / (figuresAt(*again).again * forward);
        }
        if (layer.weights >= 0) out.parameters = layer.weights / 2 / m_model.layerParameters();
        return out;
    }

    static void add(PassRatios& to, const PassRatios& one)
    {
        to = {to.forward + one.forward, to.input + one.input, to.weight + one.weight};
    }

    static void setMeans(MeasuredRatios& out)
    {
        const auto count = static_cast<double>(out.layers.size());
        PassRatios sum{0, 0, 0};
        for (const PassRatios& one : out.layers) add(sum, one);
        out.mean = {sum.forward / count, sum.input / count, sum.weight / count};
        KeptRatios& mean = out.keptMean;
        mean = {{0, 0, 0}, {0, 0, 0}, 0};
        for (const KeptRatios& one : out.kept) {
            for (std::size_t i = 0; i < keptKinds.size(); ++i) {
                mean.bytes[i] += one.bytes[i] / count;
                mean.again[i] += one.again[i] / count;
            }
            mean.parameters += one.parameters / count;
        }
    }

    const LayerTable& m_table;
    const ModelPreset& m_model;
    const Cluster& m_cluster;
    const StepConstants& m_constants;
};

// Where figures are: "b1 t1, b2 t1"; of many the number.
std::string placesText(const std::vector<LayerPoint>& points)
{
    constexpr std::size_t named = 6;
    if (points.size() > named) return fmt::format("{} microbatches and tensor degrees", points.size());
    std::string out;
    for (const LayerPoint& one : points)
        out += fmt::format("{}b{} t{}", out.empty() ? "" : ", ", one.samples, one.tensor);
    return out;
}

} // namespace

Result<LayerTable> parseLayerTable(std::string_view text)
{
    auto plain = parseModelLayers(text);
    if (!plain) return notATable(plain.error().message);
    const auto json = readForeignJson<JsonInput::Json>(text);
    JsonInput in(json);
    LayerTable out;
    out.model = in.get<std::string>("model", std::string());
    const LayerPoint usual = placeAt(in, {});
    if (!in.problem().empty()) return notATable(in.problem());
    std::size_t number = 0; // in the file
    for (const auto& item : in.list("layers")) {
        JsonInput of(item);
        const ModelLayer& layer = plain->layers[out.layers.size()];
        TableLayer one;
        one.kind = layer.kind;
        LayerPoint first = usual;
        first.seconds = {static_cast<double>(layer.forward) * nanoSeconds,
                         static_cast<double>(layer.input) * nanoSeconds,
                         static_cast<double>(layer.weight) * nanoSeconds};
        if (of.has("activation_bytes")) first.kept[0] = static_cast<double>(layer.activation);
        if (of.has("weight_bytes")) one.weights = static_cast<double>(layer.weights) * usual.tensor;
        one.points.push_back(first);
        if (of.has("at")) {
            std::size_t entry = 0;
            for (const auto& at : of.list("at")) {
                const std::string where = fmt::format("layer {}, at {}", number, entry++);
                if (!at.is_object()) return notATable(where + ": it is not an object");
                if (entry > mostPoints) return notATable(fmt::format("layer {}: more than {} at", number, mostPoints));
                JsonInput point(at);
                one.points.push_back(pointAt(point, usual));
                if (!point.problem().empty()) return notATable(fmt::format("{}: {}", where, point.problem()));
            }
        }
        const int count = of.get<int>("count", 1);
        if (!of.problem().empty()) return notATable(fmt::format("layer {}: {}", number, of.problem()));
        out.layers.insert(out.layers.end(), static_cast<std::size_t>(count), one);
        ++number;
    }
    return out;
}

Result<TableConstants> constantsOf(const LayerTable& table, const ModelPreset& model, const Cluster& cluster,
                                   StepConstants constants, bool more)
{
    int blocks = 0;
    bool kept = false, parameters = false, embedding = false, loss = false;
    double least = INFINITY;
    std::vector<LayerPoint> points;
    std::set<std::pair<int, int>> places;
    for (const TableLayer& layer : table.layers) {
        embedding = embedding || layer.kind == Kind::Embedding;
        loss = loss || layer.kind == Kind::Loss;
        for (const LayerPoint& one : layer.points)
            if (places.emplace(one.samples, one.tensor).second) points.push_back(one);
        if (layer.kind != Kind::Block) continue;
        ++blocks;
        parameters = parameters || layer.weights >= 0;
        for (const LayerPoint& one : layer.points) {
            if (one.timed()) least = std::min(least, one.seconds.forward);
            kept = kept || std::any_of(one.kept.begin(), one.kept.end(), [](double bytes) { return bytes >= 0; });
        }
    }
    if (blocks == 0) return fail(ErrorCode::Usage, "it has no layers of kind block", "add them");
    if (!more && blocks != model.layers)
        return fail(ErrorCode::Usage, fmt::format("it has {} layers of kind block, the model {}", blocks, model.layers),
                    "change one of them; count says how many are alike");
    if (points.size() > mostPoints)
        return fail(ErrorCode::Usage,
                    fmt::format("its figures are at {} microbatches and tensor degrees", points.size()),
                    fmt::format("keep {} at most", mostPoints));
    const bool floorless = least < constants.layerFloor; // the floor is another machine's
    if (floorless) constants.layerFloor = 0;
    constants.measured = {};
    constants.others.clear();
    const TableReader reader(table, model, cluster, constants);
    std::vector<MeasuredRatios> found;
    for (const LayerPoint& point : points) found.push_back(reader.at(point));
    TableConstants out;
    const MeasuredRatios& first = found.front();
    const auto times = [](double ratio) { return fmt::format("{:.3g}×", ratio); };
    out.words =
        fmt::format("{}{}, at {}; F, I, W of a layer take {}, {}, {} what the formulas say, and so for other "
                    "microbatches and t",
                    counted(static_cast<long long>(first.layers.size()), "layer"),
                    embedding && loss ? ", embedding and loss"
                    : embedding       ? " and embedding"
                    : loss            ? " and loss"
                                      : "",
                    placesText(points), times(first.mean.forward), times(first.mean.input), times(first.mean.weight));
    if (kept) out.words += fmt::format("; bytes kept {}", times(first.keptMean.bytes[placeOf(KeptActivations::All)]));
    if (parameters) out.words += fmt::format("; weights {}", times(first.keptMean.parameters));
    if (model.layers > static_cast<int>(first.layers.size()))
        out.words += fmt::format("; layers {} to {} count as the mean", first.layers.size(), model.layers - 1);
    out.words += "; analytic: all-reduces, messages, gradients, optimizer";
    if (!parameters) out.words += ", weights";
    if (!kept) out.words += ", and bytes kept, which are unknown";
    if (floorless) out.words += "; the constants' floor of a layer is left out, as layers are below it";
    constants.measured = std::move(found.front());
    constants.others.assign(std::make_move_iterator(found.begin() + 1), std::make_move_iterator(found.end()));
    out.constants = std::move(constants);
    return out;
}

} // namespace stagewright
