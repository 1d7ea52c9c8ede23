#include "engine/cpu/products.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include "engine/cpu/onednn.h"
#include "engine/cpu/openblas.h"
#include "engine/cpu/processor.h"

namespace stagewright::cpu {

namespace {

namespace fs = std::filesystem;

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

// The products of a block's F, I and W over the microbatch's tokens, attention's left out.
std::vector<Shape> shapesOf(const ModelConfig& model, int tokens)
{
    const int h = model.hidden;
    std::vector<Shape> shapes;
    for (const auto& [out, in] : {std::pair(3 * h, h), std::pair(h, h), std::pair(4 * h, h), std::pair(h, 4 * h)}) {
        shapes.push_back({false, true, tokens, out, in});  // x · Wᵀ
        shapes.push_back({false, false, tokens, in, out}); // dy · W
        shapes.push_back({true, false, out, in, tokens});  // dyᵀ · x
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
                products.multiply(s.transposeA, s.transposeB, s.rows, s.columns, s.depth, 1.0F, {a.data(), aStride}, {b.data(), bStride}, 0.0F, c.data(), s.columns);
            const double took = (threadSeconds() - start) / repeats;
            if (run == 1 || (run > 1 && took < best)) best = took;
        }
        seconds += best;
        work += flops;
    }
    return seconds > 0 ? 1e-9 * work / seconds : 0;
}

// A text file, one choice a line: key, tab, name, tab, reason.
class Kept {
public:
    Kept()
    {
        const char* cache = std::getenv("XDG_CACHE_HOME");
        const char* home = std::getenv("HOME");
        if (cache != nullptr && *cache == '/')
            m_file = fs::path(cache) / "stagewright" / "products";
        else if (home != nullptr && *home == '/')
            m_file = fs::path(home) / ".cache" / "stagewright" / "products";
    }

    std::optional<std::pair<std::string, std::string>> find(const std::string& key) const
    {
        std::ifstream file(m_file);
        for (std::string line; std::getline(file, line);) {
            if (!line.starts_with(key + '\t')) continue;
            const std::size_t tab = line.find('\t', key.size() + 1);
            if (tab == std::string::npos) continue;
            return std::pair(line.substr(key.size() + 1, tab - key.size() - 1), line.substr(tab + 1));
        }
        return std::nullopt;
    }

    // f(what the key has after the prefix, name, reason) for every line whose key starts with it.
    template <typename Visit>
    void each(const std::string& prefix, Visit&& visit) const
    {
        std::ifstream file(m_file);
        for (std::string line; std::getline(file, line);) {
            const std::size_t name = line.find('\t');
            const std::size_t reason = name == std::string::npos ? name : line.find('\t', name + 1);
            if (!line.starts_with(prefix) || reason == std::string::npos || name < prefix.size()) continue;
            visit(line.substr(prefix.size(), name - prefix.size()), line.substr(name + 1, reason - name - 1), line.substr(reason + 1));
        }
    }
    bool canKeep() const
    {
        std::error_code error;
        return !m_file.empty() && (fs::create_directories(m_file.parent_path(), error), !error) && ::access(m_file.parent_path().c_str(), W_OK) == 0;
    }

    // Other keys stay; a program that writes at the same time may lose its line, and measures again.
    void keep(const std::string& key, const std::string& name, const std::string& reason) const
    {
        std::string lines;
        {
            std::ifstream file(m_file);
            for (std::string line; std::getline(file, line);)
                if (!line.starts_with(key + '\t')) lines += line + '\n';
        }
        const fs::path part = m_file.string() + "." + std::to_string(::getpid());
        std::ofstream file(part);
        file << lines << key << '\t' << name << '\t' << reason << '\n';
        file.close();
        std::error_code error;
        if (file) fs::rename(part, m_file, error);
        if (!file || error) fs::remove(part, error); // a full disk: what was kept stays
    }

private:
    fs::path m_file; // empty: nowhere
};

// Of the processor and its libraries; the shape follows.
std::string machineKey(bool narrow)
{
    std::string key = processorName();
    for (const Products* products : allProducts())
        for (const auto& [name, value] : products->facts())
            key.append("; ").append(name).append(" ").append(value);
    std::replace(key.begin(), key.end(), '\t', ' ');
    return key + (narrow ? "; bf16; " : "; ");
}

std::string keyOf(const ModelConfig& model, int tokens, bool narrow = false)
{
    return machineKey(narrow) + fmt::format("hidden {}, {} tokens", model.hidden, tokens);
}

// What a reason says of a library: 101 of "onednn" in "measured: onednn 101, openblas 94 GFLOP/s"; 0: nothing.
double speedIn(const std::string& reason, std::string_view name)
{
    if (!reason.starts_with("measured: ")) return 0;
    const std::size_t at = reason.find(fmt::format(" {} ", name));
    return at == std::string::npos ? 0 : std::max(0.0, std::strtod(reason.c_str() + at + name.size() + 2, nullptr));
}

// Nothing is measured.
bool byTable()
{
    const char* rule = std::getenv("STAGEWRIGHT_PRODUCTS");
    return rule != nullptr && std::string_view(rule) == "table";
}

ProductChoice byProcessor()
{
    // OpenBLAS knows Intel's processors and those without AVX-512.
    const Products* dnn = oneDnn();
    const Products* blas = openBlas();
    return {blas == nullptr || (dnn != nullptr && hasAvx512() && !isIntel()) ? dnn : blas, "by processor", 0};
}

ProductChoice measured(const ModelConfig& model, int tokens)
{
    const Kept kept;
    const std::string key = keyOf(model, tokens);
    if (const auto known = kept.find(key))
        if (const auto products = productsNamed(known->first)) return {*products, known->second, speedIn(known->second, known->first)};
    if (!kept.canKeep()) return byProcessor();
    const std::vector<Shape> shapes = shapesOf(model, tokens);
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
    if (name == "onednn") return fail(ErrorCode::Unavailable, "oneDNN is not installed", "apt-get install libdnnl2, or use --products openblas");
    return fail(ErrorCode::Usage, fmt::format("unknown products {}", name), "use openblas or onednn");
}

Result<const NarrowProducts*> narrowProducts()
{
    if (oneDnn() == nullptr) return fail(ErrorCode::Unavailable, "bf16 on the CPU needs oneDNN, which is not installed", "apt-get install libdnnl2, or use --precision fp32");
    if (const NarrowProducts* products = oneDnnNarrow()) return products;
    return fail(ErrorCode::Unavailable, fmt::format("oneDNN {} has no bf16 products for this processor ({})", oneDnn()->facts().front().second, processorName()),
                "use --precision fp32; bf16 needs AVX-512");
}

Result<ProductChoice> chooseProducts(std::string_view name, const ModelConfig& model, int microbatchSize)
{
    if (!name.empty()) {
        auto products = productsNamed(name);
        if (!products) return tl::unexpected(std::move(products.error()));
        const auto known = Kept().find(keyOf(model, model.sequence * microbatchSize));
        return ProductChoice{*products, "asked for", known ? speedIn(known->second, name) : 0};
    }
    if (allProducts().empty()) return tl::unexpected(openBlasMissing());
    if (std::getenv("OPENBLAS_CORETYPE") != nullptr && openBlas() != nullptr) return ProductChoice{openBlas(), "OPENBLAS_CORETYPE is set", 0};
    if (allProducts().size() == 1) return ProductChoice{allProducts().front(), "the only one installed", 0};
    if (byTable()) return byProcessor();
    static std::mutex mutex;
    static std::map<std::pair<int, int>, ProductChoice> chosen; // by hidden and tokens
    const int tokens = model.sequence * microbatchSize;
    const std::lock_guard lock(mutex);
    const auto [at, fresh] = chosen.try_emplace({model.hidden, tokens});
    if (fresh) at->second = measured(model, tokens);
    return at->second;
}

std::optional<FastestProducts> fastestProducts(bool narrow)
{
    std::optional<FastestProducts> best;
    Kept().each(machineKey(narrow), [&](std::string shape, const std::string& name, std::string reason) {
        const double speed = speedIn(reason, name);
        if (shape.starts_with("hidden ") && speed > (best ? best->gflops : 0)) best = FastestProducts{std::move(reason), std::move(shape), speed};
    });
    return best;
}

double narrowSpeed(const NarrowProducts& products, const ModelConfig& model, int microbatchSize)
{
    static std::mutex mutex;
    const int tokens = model.sequence * microbatchSize;
    const std::string key = keyOf(model, tokens, true);
    const std::lock_guard lock(mutex);
    const Kept kept;
    if (const auto known = kept.find(key)) return speedIn(known->second, known->first);
    if (byTable() || !kept.canKeep()) return 0;
    const double speed = speedOf(products, shapesOf(model, tokens), layers::BFloat16{0x3f00});
    kept.keep(key, "onednn", fmt::format("measured: onednn {:.0f} GFLOP/s", speed));
    return speed;
}

} // namespace stagewright::cpu
