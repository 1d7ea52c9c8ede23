#include "engine/mpi/mpi_processes.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

#include "engine/mpi/module_abi.h"
#include "schedules/base/text.h"

namespace stagewright::mpi {

namespace {

constexpr const char* usualModule = "libstagewright_mpi.so";
constexpr const char* mpichModule = "libstagewright_mpich.so"; // of MPICH's binary interface; it names no library
constexpr auto mpichLibraries = std::to_array<const char*>({"libmpi.so.12", "libmpich.so.12"});
constexpr const char* install = "install the package stagewright-mpi, or build where libopenmpi-dev is; Open MPI is in "
                                "Debian: apt install openmpi-bin";
constexpr const char* installMpich = "build where libmpich-dev is, or start the processes by Open MPI's mpirun";

bool isSet(const char* variable)
{
    const char* text = std::getenv(variable);
    return text && *text;
}

// Whether MPICH or its kin started this process, by PMI alone: Open MPI's mpirun and Slurm's PMIx say more.
bool startedByMpich() { return isSet("PMI_SIZE") && !isSet("OMPI_COMM_WORLD_SIZE") && !isSet("PMIX_RANK"); }

std::vector<std::string> modulePlaces()
{
    if (const char* given = ::secure_getenv("STAGEWRIGHT_MPI_MODULE"); given && *given) return {given};
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return {};
    const std::filesystem::path folder = program.parent_path();
    std::vector<std::string> places;
    // one that was built with MPICH alone is the usual one
    for (const char* file : startedByMpich() ? std::vector{mpichModule, usualModule} : std::vector{usualModule})
        for (const std::filesystem::path& in : {folder, folder / STAGEWRIGHT_MPI_MODULE_FOLDER})
            places.push_back((in / file).lexically_normal().string());
    return places;
}

// The library of MPI itself, for the module that names none.
Result<void> loadMpich()
{
    std::string said;
    for (const char* name : mpichLibraries) {
        if (::dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return {};
        const char* why = ::dlerror();
        said += fmt::format("{}{}", said.empty() ? "" : "; ", why ? why : name);
    }
    return fail(ErrorCode::Unavailable, fmt::format("MPICH's library can't be loaded: {}", said),
                "load its module, or name its folder in LD_LIBRARY_PATH");
}

Result<const StagewrightMpiTable*> loadModule()
{
    std::string place;
    std::string looked;
    for (const std::string& one : modulePlaces()) {
        std::error_code ignored;
        looked.append(looked.empty() ? " " : ", ").append(one);
        if (place.empty() && std::filesystem::exists(one, ignored)) place = one;
    }
    if (place.empty())
        return fail(ErrorCode::Unavailable, "ranks as processes need the MPI module; looked for" + looked,
                    startedByMpich() ? installMpich : install);
    if (std::filesystem::path(place).filename() == mpichModule) STAGEWRIGHT_CHECK(loadMpich());
    void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL); // Open MPI's own modules use its symbols
    if (!library) {
        const char* said = ::dlerror();
        return fail(ErrorCode::Unavailable,
                    fmt::format("the MPI module can't be loaded: {}", said ? said : "no reason given"), install);
    }
    const auto function =
        reinterpret_cast<StagewrightMpiModuleFunction>(::dlsym(library, STAGEWRIGHT_MPI_MODULE_FUNCTION));
    const StagewrightMpiTable* table = function ? function() : nullptr;
    if (!table || table->abi != STAGEWRIGHT_MPI_ABI || table->tableBytes != sizeof(StagewrightMpiTable))
        return fail(ErrorCode::Unavailable, fmt::format("{} is not the MPI module of this program", place),
                    "install program and module of the same version");
    return table;
}

const Result<const StagewrightMpiTable*>& theModule()
{
    static const Result<const StagewrightMpiTable*> module = loadModule();
    return module;
}

class MpiProcesses final : public Processes {
public:
    explicit MpiProcesses(const StagewrightMpiTable& table) : m_table(table) {}

    Result<void> start()
    {
        if (m_table.start(&m_index, &m_count, &m_tagLimit) != 0)
            return fail(ErrorCode::Failed, fmt::format("MPI can't start: {}", m_table.lastError()),
                        "start the program by mpirun or srun --mpi=pmix");
        if (const int said = launchedProcesses().value_or(m_count); said != m_count)
            return fail(ErrorCode::Unavailable,
                        fmt::format("{} processes were started, and {} sees {}: they were started by another MPI", said,
                                    m_table.library(), m_count),
                        installMpich);
        m_takesDeviceMemory = m_table.takesDeviceMemory() != 0;
        return {};
    }

    std::string_view name() const override { return "mpi"; }
    int index() const override { return m_index; }
    int count() const override { return m_count; }
    int tagLimit() const override { return m_tagLimit; }
    bool takesDeviceMemory() const override { return m_takesDeviceMemory; }

    Request send(int to, int tag, const void* data, std::size_t bytes, bool met) override
    {
        StagewrightMpiRequest* request = nullptr;
        check(m_table.send(to, tag, data, bytes, met ? 1 : 0, &request));
        return request;
    }
    std::optional<Arrived> arrived(int from, int tag) override
    {
        StagewrightMpiMessage* message = nullptr;
        std::uint64_t bytes = 0;
        check(m_table.arrived(from, tag, &message, &bytes));
        if (!message) return std::nullopt;
        return Arrived{message, static_cast<std::size_t>(bytes)};
    }
    Request receive(const Arrived& message, void* to) override
    {
        StagewrightMpiRequest* request = nullptr;
        check(m_table.receive(static_cast<StagewrightMpiMessage*>(message.message), to, message.bytes, &request));
        return request;
    }
    bool done(Request& request) override
    {
        if (!request) return true;
        std::int32_t finished = 0;
        const int status = m_table.done(static_cast<StagewrightMpiRequest*>(request), &finished);
        if (status != 0 || finished != 0) request = nullptr;
        check(status);
        return finished != 0;
    }

    std::vector<std::pair<std::string, std::string>> facts() const override { return {{"mpi", m_table.library()}}; }
    void close() override { check(m_table.close()); }
    void abort(int exitCode) override
    {
        m_table.abort(exitCode);
        std::_Exit(exitCode);
    }

private:
    void check(int status) const
    {
        if (status != 0) throw std::runtime_error(m_table.lastError());
    }

    const StagewrightMpiTable& m_table;
    std::int32_t m_index = 0;
    std::int32_t m_count = 1;
    std::int32_t m_tagLimit = 0;
    bool m_takesDeviceMemory = false;
};

} // namespace

std::string launchedPlace()
{
    for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
        if (isSet(variable)) return std::getenv(variable);
    return {};
}

std::optional<int> launchedProcesses()
{
    for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
        if (isSet(variable)) return wholeOf<int>(std::getenv(variable));
    // srun --mpi=pmix
    if (std::getenv("PMIX_RANK"))
        if (const char* tasks = std::getenv("SLURM_NTASKS"); tasks && *tasks) return wholeOf<int>(tasks);
    return std::nullopt;
}

Result<void> available()
{
    if (const auto& module = theModule(); !module) return tl::unexpected(module.error());
    return {};
}

Result<std::unique_ptr<Processes>> joinProcesses()
{
    const auto& module = theModule();
    if (!module) return tl::unexpected(module.error());
    auto processes = std::make_unique<MpiProcesses>(**module);
    STAGEWRIGHT_CHECK(processes->start());
    return processes;
}

} // namespace stagewright::mpi
