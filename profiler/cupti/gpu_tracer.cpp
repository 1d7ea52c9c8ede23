#include "profiler/cupti/gpu_tracer.h"

#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>
#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr const char* moduleFile = "libstagewright_cupti.so";

std::vector<std::string> places()
{
    if (const char* given = ::secure_getenv("STAGEWRIGHT_CUPTI_MODULE"); given != nullptr && *given != '\0')
        return {given};
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return {};
    const std::filesystem::path folder = program.parent_path();
    return {(folder / moduleFile).string(),
            (folder / STAGEWRIGHT_CUPTI_MODULE_FOLDER / moduleFile).lexically_normal().string()};
}

GpuTrace traceOf(const StagewrightCuptiBatch& batch)
{
    GpuTrace trace;
    const auto* records = static_cast<const GpuRecord*>(batch.records);
    trace.records.assign(records, records + batch.count);
    trace.names.clear();
    const char* name = batch.names;
    for (std::uint64_t i = 0; i < batch.nameCount; ++i) {
        trace.names.emplace_back(name);
        name += trace.names.back().size() + 1;
    }
    trace.dropped = batch.dropped;
    trace.damagedBuffers = batch.damagedBuffers;
    trace.unknownRecords = batch.unknownRecords;
    trace.truncated = batch.truncated != 0;
    return trace;
}

} // namespace

Result<std::shared_ptr<GpuTracer>> GpuTracer::loadFile(const std::string& path)
{
    const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
    void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* said = ::dlerror();
        return fail(ErrorCode::Unavailable,
                    fmt::format("the CUPTI module can't be loaded: {}", said != nullptr ? said : "no reason given"),
                    "install CUPTI of the CUDA toolkit, or add its folder to LD_LIBRARY_PATH");
    }
    const auto function =
        reinterpret_cast<StagewrightCuptiModuleFunction>(::dlsym(library, STAGEWRIGHT_CUPTI_MODULE_FUNCTION));
    if (function == nullptr)
        return fail(ErrorCode::Unavailable,
                    fmt::format("{} is a library, but not a CUPTI module: it has no function {}", file,
                                STAGEWRIGHT_CUPTI_MODULE_FUNCTION));
    const StagewrightCuptiTable* table = function();
    const char* remedy = "install program and module of the same version";
    if (table == nullptr || table->abi != STAGEWRIGHT_CUPTI_ABI)
        return fail(ErrorCode::Unavailable,
                    fmt::format("the CUPTI module {} uses version {} of the interface, the program {}", file,
                                table != nullptr ? table->abi : 0, STAGEWRIGHT_CUPTI_ABI),
                    remedy);
    if (table->tableBytes != sizeof(StagewrightCuptiTable) || table->recordBytes != sizeof(GpuRecord) ||
        table->batchBytes != sizeof(StagewrightCuptiBatch))
        return fail(
            ErrorCode::Unavailable,
            fmt::format("the CUPTI module {} is from another build: its records have {} bytes, the program's {}", file,
                        table->recordBytes, sizeof(GpuRecord)),
            remedy);
    return std::shared_ptr<GpuTracer>(new GpuTracer(table));
}

Result<std::shared_ptr<GpuTracer>> GpuTracer::load()
{
    static const Result<std::shared_ptr<GpuTracer>> loaded = []() -> Result<std::shared_ptr<GpuTracer>> {
        std::string looked;
        for (const std::string& place : places()) {
            std::error_code ignored;
            if (std::filesystem::exists(place, ignored)) return loadFile(place);
            looked += (looked.empty() ? "" : ", ") + place;
        }
        return fail(ErrorCode::Unavailable, "the CUPTI module was not found; looked for " + looked,
                    "install the package with the CUDA module, or build where the CUDA toolkit is found");
    }();
    return loaded;
}

Result<void> GpuTracer::start(const GpuTraceOptions& options, TraceFacts& facts)
{
    StagewrightCuptiOptions wanted{};
    wanted.bufferBytes = static_cast<std::uint64_t>(options.buffer);
    wanted.largestBytes = static_cast<std::uint64_t>(options.largest);
    wanted.events = options.events ? 1 : 0;
    wanted.dump = options.dump ? 1 : 0;
    facts.cuptiVersion = static_cast<int>(m_table->cuptiVersion());
    const int started = m_table->start(&wanted);
    m_started = started == STAGEWRIGHT_CUPTI_STARTED;
    if (m_started) {
        facts.state = TraceState::Attached;
        facts.reason.clear();
        return {};
    }
    facts.state = started == STAGEWRIGHT_CUPTI_CONFLICT ? TraceState::Conflict : TraceState::Failed;
    facts.reason = m_table->lastError();
    return fail(ErrorCode::Unavailable, facts.warnings().front());
}

GpuTrace GpuTracer::take()
{
    StagewrightCuptiBatch batch{};
    if (m_table->take(&batch) == 0) return traceOf(batch);
    GpuTrace nothing; // memory ran out
    nothing.truncated = true;
    return nothing;
}

void GpuTracer::stop(TraceFacts& facts)
{
    if (!m_started) return;
    facts.detached = m_table->stop() != 0;
    m_started = false;
}

Result<std::string> GpuTracer::dump() const
{
    const char* bytes = nullptr;
    std::uint64_t size = 0;
    if (m_table->dump(&bytes, &size) != 0) return fail(ErrorCode::Failed, m_table->lastError());
    return std::string(bytes, size);
}

Result<GpuTrace> GpuTracer::decodeDump(std::string_view bytes) const
{
    StagewrightCuptiBatch batch{};
    if (m_table->decodeDump(bytes.data(), bytes.size(), &batch) != 0)
        return fail(ErrorCode::Unreadable, m_table->lastError());
    return traceOf(batch);
}

std::string rangeName(const Op& op) { return "PP:" + toText(op); }

} // namespace stagewright
