#include "engine/cpu/products.h"

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

// The products of F, I and W of the linear layers.
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

// GFLOP/s over the shapes together, by each shape's best of three, of about 5 ms or one product each.
template <typename Element, typename Library>
double speedOf(const Library& products, const std::vector<Shape>& shapes, Element one)
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
                products.multiply(s.transposeA, s.transposeB, s.rows, s.columns, s.depth, 1.0F, {a.data(), aStride},
                                  {b.data(), bStride}, 0.0F, c.data(), s.columns);
            const double took = (threadSeconds() - start) / repeats;
            if (run == 1 || (run > 1 && took < best)) best = took;
        }
        seconds += best;
        work += flops;
    }
    return seconds > 0 ? 1e-9 * work / seconds : 0;
}

// Of the processor and its libraries; the shape follows.
std::string machineKey(bool narrow)
{
    std::string key = processorName();
    for (const Products* products : allProducts())
        for (const auto& [name, value] : products->facts()) key.append("; ").append(name).append(" ").append(value);
    std::replace(key.begin(), key.end(), '\t', ' ');
    return key + (narrow ? "; bf16; " : "; ");
}

// What a reason says of a library: 101 of "onednn" in "measured: onednn 101, openblas 94 GFLOP/s"; 0: nothing.
double speedIn(const std::string& reason, std::string_view name)
{
    if (!reason.starts_with("measured: ")) return 0;
    const std::size_t at = reason.find(fmt::format(" {} ", name));
    return at == std::string::npos ? 0 : std::max(0.0, std::strtod(reason.c_str() + at + name.size() + 2, nullptr));
}

ProductChoice byProcessor()
{
    // OpenBLAS knows Intel's processors and those without AVX-512.
    const Products* dnn = oneDnn();
    const Products* blas = openBlas();
    return {blas == nullptr || (dnn != nullptr && hasAvx512() && !isIntel()) ? dnn : blas, "by processor", 0};
}

ProductChoice measured(const MathUse& use)
{
    const KeptChoices kept;
    const std::string key = machineKey(false) + use.name;
    if (const auto known = kept.find(key))
        if (const auto products = productsNamed(known->first))
            return {*products, known->second, speedIn(known->second, known->first)};
    if (!kept.canKeep()) return byProcessor();
    const std::vector<Shape> shapes = shapesOf(use);
    std::vector<std::pair<double, const Products*>> speeds;
    for (const Products* products : allProducts())
        if (products->reserve(1)) speeds.emplace_back(speedOf(*products, shapes, 0.5F), products);
    if (speeds.empty()) return byProcessor();
    std::stable_sort(speeds.begin(), speeds.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string reason = "measured:";
    for (const auto& [speed, products] : speeds)
        reason += fmt::format("{} {} {:.0f}", reason.ends_with(':') ? "" : ",", products->name(), speed);
    reason += " GFLOP/s";
    kept.keep(key, std::string(speeds.front().second->name()), reason);
    return {speeds.front().second, reason, speeds.front().first};
}

} // namespace

const std::vector<const Products*>& allProducts()
{
    static const std::vector<const Products*> all = [] {
        std::vector<const Products*> out;
        if (const Products* blas = openBlas()) out.push_back(blas);
        if (const Products* dnn = oneDnn()) out.push_back(dnn);
        return out;
    }();
    return all;
}

Result<const Products*> productsNamed(std::string_view name)
{
    for (const Products* products : allProducts())
        if (products->name() == name) return products;
    if (name == "openblas") return tl::unexpected(openBlasMissing());
    if (name == "onednn")
        return fail(ErrorCode::Unavailable, "oneDNN is not installed",
                    "apt-get install libdnnl2, or use --products openblas");
    return fail(ErrorCode::Usage, fmt::format("unknown products {}", name), "use openblas or onednn");
}

Result<const NarrowProducts*> narrowProducts()
{
    if (oneDnn() == nullptr)
        return fail(ErrorCode::Unavailable, "bf16 on the CPU needs oneDNN, which is not installed",
                    "apt-get install libdnnl2, or use --precision fp32");
    if (const NarrowProducts* products = oneDnnNarrow()) return products;
    return fail(ErrorCode::Unavailable,
                fmt::format("oneDNN {} has no bf16 products for this processor ({})", oneDnn()->facts().front().second,
                            processorName()),
                "use --precision fp32; bf16 needs AVX-512");
}

Result<ProductChoice> chooseProducts(std::string_view name, const MathUse& use)
{
    if (!name.empty()) {
        STAGEWRIGHT_TRY(auto products, productsNamed(name));
        const auto known = KeptChoices().find(machineKey(false) + use.name);
        return ProductChoice{products, "asked for", known ? speedIn(known->second, name) : 0};
    }
    if (allProducts().empty()) return tl::unexpected(openBlasMissing());
    if (std::getenv("OPENBLAS_CORETYPE") != nullptr && openBlas() != nullptr)
        return ProductChoice{openBlas(), "OPENBLAS_CORETYPE is set", 0};
    if (allProducts().size() == 1) return ProductChoice{allProducts().front(), "the only one installed", 0};
    if (choicesByTable()) return byProcessor();
    static std::mutex mutex;
    static std::map<std::string, ProductChoice> chosen; // by the shapes' name
    const std::lock_guard lock(mutex);
    const auto [at, fresh] = chosen.try_emplace(use.name);
    if (fresh) at->second = measured(use);
    return at->second;
}

std::optional<FastestProducts> fastestProducts(bool narrow)
{
    std::optional<FastestProducts> best;
    KeptChoices().each(machineKey(narrow), [&](std::string shape, const std::string& name, std::string reason) {
        const double speed = speedIn(reason, name);
        if (!shape.starts_with("bf16; ") && speed > (best ? best->gflops : 0))
            best = FastestProducts{std::move(reason), std::move(shape), speed};
    });
    return best;
}

double narrowSpeed(const NarrowProducts& products, const MathUse& use)
{
    static std::mutex mutex;
    const std::string key = machineKey(true) + use.name;
    const std::lock_guard lock(mutex);
    const KeptChoices kept;
    if (const auto known = kept.find(key)) return speedIn(known->second, known->first);
    if (choicesByTable() || !kept.canKeep()) return 0;
    const double speed = speedOf(products, shapesOf(use), layers::BFloat16{0x3f00});
    kept.keep(key, "onednn", fmt::format("measured: onednn {:.0f} GFLOP/s", speed));
    return speed;
}

} // namespace stagewright::cpu
