#include "engine/cuda/module/cudnn_attention.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <dlfcn.h>

namespace stagewright::cuda::module {

namespace {

// The values of cuDNN 9's enumerations that are used here (cudnn_graph.h).
enum Descriptor {
    PointwiseDescriptor = 0,
    EngineDescriptor = 2,
    EngineConfigDescriptor = 3,
    HeuristicsDescriptor = 4,
    PlanDescriptor = 5,
    PointwiseOperation = 13,
    GraphDescriptor = 15,
    VariantPackDescriptor = 16,
    TensorDescriptor = 17,
    MatmulDescriptor = 18,
    MatmulOperation = 19,
    ReductionDescriptor = 21,
    ReductionOperation = 22,
};
enum Attribute {
    PointwiseMode = 0,
    PointwisePrecision = 1,
    PointwiseAxis = 9,
    HeuristicsMode = 200,
    HeuristicsGraph = 201,
    HeuristicsResults = 202,
    EngineConfigEngine = 300,
    PlanEngineConfig = 401,
    PlanWorkspace = 402,
    PointwiseOf = 750,
    PointwiseX = 751,
    PointwiseB = 752,
    PointwiseY = 753,
    PointwiseT = 758,
    GraphHandle = 800,
    GraphOperations = 801,
    TensorAlignment = 900,
    TensorType = 901,
    TensorDimensions = 902,
    TensorStrides = 903,
    TensorId = 906,
    TensorIsVirtual = 907,
    TensorIsByValue = 908,
    PackIds = 1000,
    PackPointers = 1001,
    PackWorkspace = 1003,
    EngineNumericalNotes = 1303,
    MatmulPrecision = 1500,
    MatmulA = 1520,
    MatmulB = 1521,
    MatmulC = 1522,
    MatmulOf = 1523,
    ReductionOperator = 1600,
    ReductionPrecision = 1601,
    ReductionX = 1610,
    ReductionY = 1611,
    ReductionOf = 1612,
};
enum Type {
    HandleType = 0,
    DataTypeType = 1,
    BooleanType = 2,
    Int64Type = 3,
    VoidPointerType = 6,
    HeuristicsModeType = 8,
    NumericalNoteType = 11,
    PointwiseModeType = 14,
    DescriptorType = 15,
    ReductionOperatorType = 18,
};
enum DataType { Float = 0, Int32 = 4, Bf16 = 9, Boolean = 11 };
enum Mode {
    Add = 0,
    Multiply = 1,
    Divide = 6,
    Subtract = 9,
    Exp = 13,
    Log = 15,
    NotLess = 303,
    Index = 501,
    Select = 601
};
enum Reduction { Sum = 0, Maximum = 3 };
constexpr int modeOfHeuristics = 3; // CUDNN_HEUR_MODE_A
constexpr int nondeterministic = 4; // CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC
constexpr std::int64_t alignment = 16;

struct Functions {
    int (*create)(void** handle) = nullptr;
    int (*destroy)(void* handle) = nullptr;
    int (*setStream)(void* handle, cudaStream_t stream) = nullptr;
    std::size_t (*version)() = nullptr;
    int (*createDescriptor)(int kind, void** out) = nullptr;
    int (*destroyDescriptor)(void* descriptor) = nullptr;
    int (*finalize)(void* descriptor) = nullptr;
    int (*set)(void* descriptor, int attribute, int type, std::int64_t count, const void* elements) = nullptr;
    int (*get)(const void* descriptor, int attribute, int type, std::int64_t wanted, std::int64_t* count,
               void* elements) = nullptr;
    int (*execute)(void* handle, void* plan, void* pack) = nullptr;
    bool whole = false;
};

const Functions& cudnn()
{
    static const Functions all = [] {
        Functions f;
        void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return f;
        f.whole = true;
        const auto find = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
            f.whole = f.whole && function != nullptr;
        };
        find(f.create, "cudnnCreate");
        find(f.destroy, "cudnnDestroy");
        find(f.setStream, "cudnnSetStream");
        find(f.version, "cudnnGetVersion");
        find(f.createDescriptor, "cudnnBackendCreateDescriptor");
        find(f.destroyDescriptor, "cudnnBackendDestroyDescriptor");
        find(f.finalize, "cudnnBackendFinalize");
        find(f.set, "cudnnBackendSetAttribute");
        find(f.get, "cudnnBackendGetAttribute");
        find(f.execute, "cudnnBackendExecute");
        return f;
    }();
    return all;
}

// Descriptors and whether all of them could be made. They live as long as this.
class Descriptors {
public:
    Descriptors() = default;
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;
    ~Descriptors()
    {
        for (auto one = m_all.rbegin(); one != m_all.rend(); ++one) (void)cudnn().destroyDescriptor(*one);
    }

    bool good() const { return m_good; }
    void* make(Descriptor kind)
    {
        void* made = nullptr;
        m_good = m_good && cudnn().createDescriptor(kind, &made) == 0;
        if (made) m_all.push_back(made);
        return made;
    }
    template <typename Element>
    void set(void* descriptor, Attribute attribute, Type type, const Element* elements, std::int64_t count = 1)
    {
        m_good = m_good && cudnn().set(descriptor, attribute, type, count, elements) == 0;
    }
    void* finish(void* descriptor)
    {
        m_good = m_good && cudnn().finalize(descriptor) == 0;
        return descriptor;
    }

private:
    std::vector<void*> m_all;
    bool m_good = true;
};

using Four = std::array<std::int64_t, 4>;

// What a pointwise operation takes beside x.
struct Others {
    void* b = nullptr;      // second operand
    void* t = nullptr;      // what a selection goes by
    std::int64_t axis = -1; // of an index
};

// A graph of operations under construction. Tensors are numbered in the order in which they are made.
class Graph {
public:
    explicit Graph(Descriptors& descriptors) : m_d(descriptors) {}

    struct Tensor {
        void* descriptor;
        std::int64_t id;
    };
    enum class Place { Memory, Inside, Value };
    Tensor tensor(DataType type, const Four& sizes, const Four& strides, Place place)
    {
        const std::int64_t id = ++m_tensors;
        void* made = m_d.make(TensorDescriptor);
        m_d.set(made, TensorType, DataTypeType, &type);
        m_d.set(made, TensorDimensions, Int64Type, sizes.data(), 4);
        m_d.set(made, TensorStrides, Int64Type, strides.data(), 4);
        m_d.set(made, TensorId, Int64Type, &id);
        m_d.set(made, TensorAlignment, Int64Type, &alignment);
        const bool yes = true;
        if (place == Place::Inside) m_d.set(made, TensorIsVirtual, BooleanType, &yes);
        if (place == Place::Value) m_d.set(made, TensorIsByValue, BooleanType, &yes);
        return {m_d.finish(made), id};
    }
    // A result that never leaves the kernel, in dense rows.
    Tensor inside(DataType type, const Four& sizes)
    {
        return tensor(type, sizes, {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1}, Place::Inside);
    }

    void matmul(const Tensor& a, const Tensor& b, const Tensor& c)
    {
        void* kind = m_d.make(MatmulDescriptor);
        m_d.set(kind, MatmulPrecision, DataTypeType, &single);
        m_d.finish(kind);
        operation(MatmulOperation,
                  {{MatmulA, a.descriptor}, {MatmulB, b.descriptor}, {MatmulC, c.descriptor}, {MatmulOf, kind}});
    }
    void reduce(Reduction reduction, const Tensor& x, const Tensor& y)
    {
        void* kind = m_d.make(ReductionDescriptor);
        m_d.set(kind, ReductionPrecision, DataTypeType, &single);
        m_d.set(kind, ReductionOperator, ReductionOperatorType, &reduction);
        m_d.finish(kind);
        operation(ReductionOperation, {{ReductionOf, kind}, {ReductionX, x.descriptor}, {ReductionY, y.descriptor}});
    }
    void pointwise(Mode mode, const Tensor& x, const Tensor& y, const Others& others = Others())
    {
        const DataType precision = mode == NotLess ? Boolean : Float;
        void* kind = m_d.make(PointwiseDescriptor);
        m_d.set(kind, PointwiseMode, PointwiseModeType, &mode);
        m_d.set(kind, PointwisePrecision, DataTypeType, &precision);
        if (others.axis >= 0) m_d.set(kind, PointwiseAxis, Int64Type, &others.axis);
        m_d.finish(kind);
        std::vector<std::pair<Attribute, void*>> parts{
            {PointwiseOf, kind}, {PointwiseX, x.descriptor}, {PointwiseY, y.descriptor}};
        if (others.b) parts.emplace_back(PointwiseB, others.b);
        if (others.t) parts.emplace_back(PointwiseT, others.t);
        operation(PointwiseOperation, parts);
    }
    void* finish(void* handle)
    {
        void* made = m_d.make(GraphDescriptor);
        m_d.set(made, GraphOperations, DescriptorType, m_operations.data(),
                static_cast<std::int64_t>(m_operations.size()));
        m_d.set(made, GraphHandle, HandleType, &handle);
        return m_d.finish(made);
    }

private:
    void operation(Descriptor kind, const std::vector<std::pair<Attribute, void*>>& parts)
    {
        void* made = m_d.make(kind);
        for (const auto& [attribute, part] : parts) m_d.set(made, attribute, DescriptorType, &part);
        m_operations.push_back(m_d.finish(made));
    }

    static constexpr DataType single = Float;
    Descriptors& m_d;
    std::vector<void*> m_operations;
    std::int64_t m_tensors = 0;
};

// Whether the engine of a configuration gives the same bits in every run.
bool isDeterministic(Descriptors& d, void* config)
{
    void* engine = d.make(EngineDescriptor);
    std::int64_t count = 0;
    if (!d.good() || cudnn().get(config, EngineConfigEngine, DescriptorType, 1, &count, &engine) != 0) return false;
    int notes[16] = {};
    if (cudnn().get(engine, EngineNumericalNotes, NumericalNoteType, 16, &count, notes) != 0) return false;
    for (std::int64_t i = 0; i < count && i < 16; ++i)
        if (notes[i] == nondeterministic) return false;
    return true;
}

// The first plan of cuDNN's list that can be made and gives the same bits in every run; null: none.
void* planOf(Descriptors& d, void* graph, std::int64_t& workspace)
{
    void* heuristics = d.make(HeuristicsDescriptor);
    d.set(heuristics, HeuristicsGraph, DescriptorType, &graph);
    d.set(heuristics, HeuristicsMode, HeuristicsModeType, &modeOfHeuristics);
    d.finish(heuristics);
    std::int64_t count = 0;
    if (!d.good() || cudnn().get(heuristics, HeuristicsResults, DescriptorType, 0, &count, nullptr) != 0 || count < 1)
        return nullptr;
    std::vector<void*> configs;
    for (std::int64_t i = 0; i < count; ++i) configs.push_back(d.make(EngineConfigDescriptor));
    if (!d.good() || cudnn().get(heuristics, HeuristicsResults, DescriptorType, count, &count, configs.data()) != 0)
        return nullptr;
    configs.resize(static_cast<std::size_t>(count));
    for (void* config : configs) {
        if (!isDeterministic(d, config)) continue;
        void* plan = d.make(PlanDescriptor);
        std::int64_t found = 0;
        if (d.good() && cudnn().set(plan, PlanEngineConfig, DescriptorType, 1, &config) == 0 &&
            cudnn().finalize(plan) == 0 && cudnn().get(plan, PlanWorkspace, Int64Type, 1, &found, &workspace) == 0)
            return plan;
    }
    return nullptr;
}

} // namespace

struct CudnnAttention::Plan {
    Descriptors descriptors;
    void* plan = nullptr;
    std::int64_t workspace = 0;
    std::int64_t query = 0, key = 0, value = 0, out = 0, sums = 0, scale = 0, masked = 0; // numbers of tensors
};

int cudnnVersion() { return cudnn().whole ? static_cast<int>(cudnn().version()) : 0; }

std::unique_ptr<CudnnAttention> CudnnAttention::open(cudaStream_t stream)
{
    if (!cudnn().whole) return nullptr;
    void* handle = nullptr;
    if (cudnn().create(&handle) != 0) return nullptr;
    std::unique_ptr<CudnnAttention> made(new CudnnAttention(handle));
    if (cudnn().setStream(handle, stream) != 0) return nullptr;
    return made;
}

CudnnAttention::CudnnAttention(void* handle) : m_handle(handle) {}

CudnnAttention::~CudnnAttention()
{
    m_plans.clear();
    (void)cudnn().destroy(m_handle);
}

// softmax(scale · Q·Kᵀ, later keys at −∞) · V and its log-sum-exp, written out as the operations that cuDNN fuses.
CudnnAttention::Plan* CudnnAttention::planFor(const StagewrightFlash& f)
{
    const auto [at, fresh] = m_plans.try_emplace({f.batch, f.heads, f.tokens, f.width, f.stride});
    if (!fresh) return at->second.get();
    auto plan = std::make_unique<Plan>();
    Graph g(plan->descriptors);
    using Place = Graph::Place;
    const std::int64_t b = f.batch, h = f.heads, t = f.tokens, w = f.width;
    const std::int64_t dense = h * w;
    const Four rows{b, h, t, w}, square{b, h, t, t}, column{b, h, t, 1}, one{1, 1, 1, 1};
    const Graph::Tensor query = g.tensor(Bf16, rows, {t * f.stride, w, f.stride, 1}, Place::Memory);
    const Graph::Tensor key = g.tensor(Bf16, {b, h, w, t}, {t * f.stride, w, 1, f.stride}, Place::Memory);
    const Graph::Tensor value = g.tensor(Bf16, rows, {t * f.stride, w, f.stride, 1}, Place::Memory);
    const Graph::Tensor out = g.tensor(Bf16, rows, {t * dense, w, dense, 1}, Place::Memory);
    const Graph::Tensor sums = g.tensor(Float, column, {h * t, t, 1, 1}, Place::Memory);
    const Graph::Tensor scale = g.tensor(Float, one, one, Place::Value);
    const Graph::Tensor masked = g.tensor(Float, one, one, Place::Value);
    const Graph::Tensor gemm = g.inside(Float, square), scaled = g.inside(Float, square), row = g.inside(Int32, square),
                        later = g.inside(Int32, square), kept = g.inside(Boolean, square),
                        score = g.inside(Float, square), most = g.inside(Float, column),
                        below = g.inside(Float, square), power = g.inside(Float, square),
                        total = g.inside(Float, column), logTotal = g.inside(Float, column),
                        weight = g.inside(Bf16, square);
    g.matmul(query, key, gemm);
    g.pointwise(Multiply, gemm, scaled, {scale.descriptor});
    g.pointwise(Index, scaled, row, {nullptr, nullptr, 2});
    g.pointwise(Index, scaled, later, {nullptr, nullptr, 3});
    g.pointwise(NotLess, row, kept, {later.descriptor});
    g.pointwise(Select, scaled, score, {masked.descriptor, kept.descriptor});
    g.reduce(Maximum, score, most);
    g.pointwise(Subtract, score, below, {most.descriptor});
    g.pointwise(Exp, below, power);
    g.reduce(Sum, power, total);
    g.pointwise(Log, total, logTotal);
    g.pointwise(Add, most, sums, {logTotal.descriptor});
    g.pointwise(Divide, power, weight, {total.descriptor});
    g.matmul(weight, value, out);
    void* graph = g.finish(m_handle);
    if (plan->descriptors.good()) plan->plan = planOf(plan->descriptors, graph, plan->workspace);
    if (!plan->plan) return nullptr;
    plan->query = query.id;
    plan->key = key.id;
    plan->value = value.id;
    plan->out = out.id;
    plan->sums = sums.id;
    plan->scale = scale.id;
    plan->masked = masked.id;
    at->second = std::move(plan);
    return at->second.get();
}

bool CudnnAttention::forward(const StagewrightFlash& f, void* workspace, std::size_t workspaceBytes)
{
    Plan* plan = planFor(f);
    if (!plan || plan->workspace > static_cast<std::int64_t>(workspaceBytes)) return false;
    float scale = 1.0F / std::sqrt(static_cast<float>(f.width));
    float masked = -std::numeric_limits<float>::infinity();
    const std::int64_t ids[] = {plan->query, plan->key, plan->value, plan->out, plan->sums, plan->scale, plan->masked};
    const void* pointers[] = {f.query, f.key, f.value, f.out, f.sums, &scale, &masked};
    Descriptors d;
    void* pack = d.make(VariantPackDescriptor);
    d.set(pack, PackPointers, VoidPointerType, pointers, std::size(pointers));
    d.set(pack, PackIds, Int64Type, ids, std::size(ids));
    d.set(pack, PackWorkspace, VoidPointerType, &workspace);
    d.finish(pack);
    return d.good() && cudnn().execute(m_handle, plan->plan, pack) == 0;
}

} // namespace stagewright::cuda::module
