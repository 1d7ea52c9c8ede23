#include "engine/cpu/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>
#include <time.h>

#include "engine/cpu/onednn.h"
#include "engine/cpu/openblas.h"
#include "engine/cpu/processor.h"
#include "engine/device/kept_choices.h"

namespace stagewright::cpu {

namespace {

double threadSeconds()
{
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Shape {
    bool transposeA;
    bool transposeB;
    int rows;
    int columns;
    int depth;
};

// The GEMMs of F, I and W of the linear layers.
std::vector<Shape> shapesOf(const MathUse& use)
{
    std::vector<Shape> shapes;
    for (const auto& [out, in] : use.layers) {
        shapes.push_back({false, true, use.rows, out, in});  // x · Wᵀ
        shapes.push_back({false, false, use.rows, in, out}); // dy · W
        shapes.push_back({true, false, out, in, use.rows});  // dyᵀ · x
    }
    return shapes;
}

// GFLOP/s over the shapes together, by each shape's best of three, of about 5 ms or one GEMM each.
template <typename Element, typename Library>
double speedOf(const Library& gemm, const std::vector<Shape>& shapes, Element one)
{
    double seconds = 0;
    double work = 0;
    for (const Shape& s : shapes) {
        const double flops = 2.0 * s.rows * s.columns * s.depth;
        const int repeats = std::clamp(static_cast<int>(5e8 / flops), 1, 1000);
        const std::vector<Element> a(static_cast<std::size_t>(s.rows) * static_cast<std::size_t>(s.depth), one);
        const std::vector<Element> b(static_cast<std::size_t>(s.columns) * static_cast<std::size_t>(s.depth), one);
        std::vector<float> c(static_cast<std::size_t>(s.rows) * static_cast<std::size_t>(s.columns), 0.0F);
        const int aStride = s.transposeA ? s.rows : s.depth;
        const int bStride = s.transposeB ? s.depth : s.columns;
        double best = 0;
        for (int run = 0; run < 4; ++run) { // the first is for kernels that are made on demand
            const double start = threadSeconds();
            for (int i = 0; i < (run == 0 ? 1 : repeats); ++i)
                gemm.multiply(s.transposeA, s.transposeB, s.rows, s.columns, s.depth, 1.0F, {a.data(), aStride},
                              {b.data(), bStride}, 0.0F, c.data(), s.columns);
            const double took = (threadSeconds() - start) / repeats;
            if (run == 1 || (run > 1 && took < best)) best = took;
        }
        seconds += best;
        work += flops;
    }
    return seconds > 0 ? 1e-9 * work / seconds : 0;
}

// Times hold for one processor and its libraries, so these begin the key; the shape follows.
std::string machineKey(bool bf16)
{
    std::string key = processorName();
    for (const Gemm* gemm : allGemms())
        for (const auto& [name, value] : gemm->facts()) key.append("; ").append(name).append(" ").append(value);
    std::replace(key.begin(), key.end(), '\t', ' ');
    return key + (bf16 ? "; bf16; " : "; ");
}

// What a reason says of a library: 101 of "onednn" in "measured: onednn 101, openblas 94 GFLOP/s"; 0: nothing.
double speedIn(const std::string& reason, std::string_view name)
{
    if (!reason.starts_with("measured: ")) return 0;
    const std::size_t at = reason.find(fmt::format(" {} ", name));
    return at == std::string::npos ? 0 : std::max(0.0, std::strtod(reason.c_str() + at + name.size() + 2, nullptr));
}

GemmChoice byProcessor()
{
    // OpenBLAS knows Intel's processors and those without AVX-512.
    const Gemm* dnn = oneDnn();
    const Gemm* blas = openBlas();
    return {blas == nullptr || (dnn != nullptr && hasAvx512() && !isIntel()) ? dnn : blas, "by processor", 0};
}

GemmChoice measured(const MathUse& use)
{
    const KeptChoices kept;
    const std::string key = machineKey(false) + use.name;
    if (const auto known = kept.find(key))
        if (const auto gemm = gemmNamed(known->first))
            return {*gemm, known->second, speedIn(known->second, known->first)};
    if (!kept.canKeep()) return byProcessor();
    const std::vector<Shape> shapes = shapesOf(use);
    std::vector<std::pair<double, const Gemm*>> speeds;
    for (const Gemm* gemm : allGemms())
        if (gemm->reserve(1)) speeds.emplace_back(speedOf(*gemm, shapes, 0.5F), gemm);
    if (speeds.empty()) return byProcessor();
    std::stable_sort(speeds.begin(), speeds.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string reason = "measured:";
    for (const auto& [speed, gemm] : speeds)
        reason += fmt::format("{} {} {:.0f}", reason.ends_with(':') ? "" : ",", gemm->name(), speed);
    reason += " GFLOP/s";
    kept.keep(key, std::string(speeds.front().second->name()), reason);
    return {speeds.front().second, reason, speeds.front().first};
}

} // namespace

const std::vector<const Gemm*>& allGemms()
{
    static const std::vector<const Gemm*> all = [] {
        std::vector<const Gemm*> out;
        if (const Gemm* blas = openBlas()) out.push_back(blas);
        if (const Gemm* dnn = oneDnn()) out.push_back(dnn);
        return out;
    }();
    return all;
}

Result<const Gemm*> gemmNamed(std::string_view name)
{
    for (const Gemm* gemm : allGemms())
        if (gemm->name() == name) return gemm;
    if (name == "openblas") return tl::unexpected(openBlasMissing());
    if (name == "onednn")
        return fail(ErrorCode::Unavailable, "oneDNN is not installed",
                    "apt-get install libdnnl2, or use --blas openblas");
    return fail(ErrorCode::Usage, fmt::format("unknown BLAS {}", name), "use openblas or onednn");
}

Result<const Bf16Gemm*> bf16Gemm()
{
    if (oneDnn() == nullptr)
        return fail(ErrorCode::Unavailable, "bf16 on the CPU needs oneDNN, which is not installed",
                    "apt-get install libdnnl2, or use --precision fp32");
    if (const Bf16Gemm* gemm = oneDnnBf16()) return gemm;
    return fail(ErrorCode::Unavailable,
                fmt::format("oneDNN {} has no bf16 GEMMs for this processor ({})", oneDnn()->facts().front().second,
                            processorName()),
                "use --precision fp32; bf16 needs AVX-512");
}

Result<GemmChoice> chooseGemm(std::string_view name, const MathUse& use)
{
    if (!name.empty()) {
        STAGEWRIGHT_TRY(auto gemm, gemmNamed(name));
        const auto known = KeptChoices().find(machineKey(false) + use.name);
        return GemmChoice{gemm, "asked for", known ? speedIn(known->second, name) : 0};
    }
    if (allGemms().empty()) return tl::unexpected(openBlasMissing());
    if (std::getenv("OPENBLAS_CORETYPE") != nullptr && openBlas() != nullptr)
        return GemmChoice{openBlas(), "OPENBLAS_CORETYPE is set", 0};
    if (allGemms().size() == 1) return GemmChoice{allGemms().front(), "the only one installed", 0};
    if (choicesByTable()) return byProcessor();
    static std::mutex mutex;
    static std::map<std::string, GemmChoice> chosen; // by the shapes' name
    const std::lock_guard lock(mutex);
    const auto [at, fresh] = chosen.try_emplace(use.name);
    if (fresh) at->second = measured(use);
    return at->second;
}

std::optional<FastestGemm> fastestGemm(bool bf16)
{
    std::optional<FastestGemm> best;
    KeptChoices().each(machineKey(bf16), [&](std::string shape, const std::string& name, std::string reason) {
        const double speed = speedIn(reason, name);
        if (!shape.starts_with("bf16; ") && speed > (best ? best->gflops : 0))
            best = FastestGemm{std::move(reason), std::move(shape), speed};
    });
    return best;
}

double bf16Speed(const Bf16Gemm& gemm, const MathUse& use)
{
    static std::mutex mutex;
    const std::string key = machineKey(true) + use.name;
    const std::lock_guard lock(mutex);
    const KeptChoices kept;
    if (const auto known = kept.find(key)) return speedIn(known->second, known->first);
    if (choicesByTable() || !kept.canKeep()) return 0;
    const double speed = speedOf(gemm, shapesOf(use), layers::BFloat16{0x3f00});
    kept.keep(key, "onednn", fmt::format("measured: onednn {:.0f} GFLOP/s", speed));
    return speed;
}

} // namespace stagewright::cpu
