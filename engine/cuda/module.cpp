#include "engine/cuda/module.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

namespace stagewright::cuda {

namespace {

constexpr const char* moduleFile = "libstagewright_cuda.so";

std::string notFound(const std::vector<std::string>& places)
{
    std::string text = "the CUDA module was not found; looked for";
    for (std::size_t i = 0; i < places.size(); ++i) text.append(i == 0 ? " " : ", ").append(places[i]);
    return text;
}

// The loader's message, with a remedy.
Error loadingFailed(const std::string& path, const std::string& said)
{
    const bool library = said.find("cannot open shared object file") != std::string::npos && !said.starts_with(path);
    if (library) {
        return {ErrorCode::Unavailable,
                fmt::format("the CUDA module {} lacks a library of the CUDA toolkit: {}", path, said),
                fmt::format("install the CUDA {} runtime libraries, or add their folder to LD_LIBRARY_PATH",
                            STAGEWRIGHT_CUDA_TOOLKIT)};
    }
    return {ErrorCode::Unavailable, fmt::format("the CUDA module can't be loaded: {}", said), "reinstall the module"};
}

// A file cut short would end the program: the loader maps what the headers promise and touches pages that are not
// there. The loader reports everything else that is wrong with a file.
std::optional<Error> cutShort(const std::string& path)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return std::nullopt;
    const auto size = static_cast<std::uint64_t>(file.tellg());
    ElfW(Ehdr) header{};
    file.seekg(0);
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return std::nullopt;
    std::uint64_t needed = header.e_phoff + std::uint64_t{header.e_phnum} * sizeof(ElfW(Phdr));
    file.seekg(static_cast<std::streamoff>(header.e_phoff));
    ElfW(Phdr) segment{};
    for (int i = 0; i < header.e_phnum && file.read(reinterpret_cast<char*>(&segment), sizeof segment); ++i)
        if (segment.p_type == PT_LOAD) needed = std::max<std::uint64_t>(needed, segment.p_offset + segment.p_filesz);
    if (needed <= size) return std::nullopt;
    return loadingFailed(path, fmt::format("{}: file too short, {} bytes of {}", path, size, needed));
}

// What the driver reads when it starts, unless the user chose. As many queues to the device as streams can fill:
// partitions have three per rank, and streams that share a queue wait for each other. Kernels are loaded at the start:
// loading one while NCCL waits for another device can hang.
void prepareDriver()
{
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

Result<Module> findModule()
{
    const std::vector<std::string> places = modulePlaces();
    for (const std::string& place : places) {
        std::error_code ignored;
        if (std::filesystem::exists(place, ignored)) return loadModule(place);
    }
    return fail(ErrorCode::Unavailable, notFound(places),
                "install the package with the CUDA module, build where nvcc is found, or set STAGEWRIGHT_CUDA_MODULE "
                "to its file");
}

} // namespace

std::vector<std::string> modulePlaces()
{
    if (const char* given = ::secure_getenv("STAGEWRIGHT_CUDA_MODULE"); given && *given) return {given};
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return {};
    const std::filesystem::path folder = program.parent_path();
    return {(folder / moduleFile).string(),
            (folder / STAGEWRIGHT_CUDA_MODULE_FOLDER / moduleFile).lexically_normal().string()};
}

Result<Module> loadModule(const std::string& path)
{
    // A name without a folder would be looked up along the system's library path.
    const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
    if (std::optional<Error> error = cutShort(file)) return tl::unexpected(std::move(*error));
    prepareDriver();
    void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* said = ::dlerror();
        return tl::unexpected(loadingFailed(file, said ? said : "no reason given"));
    }
    void* symbol = ::dlsym(library, STAGEWRIGHT_CUDA_MODULE_FUNCTION);
    if (!symbol) {
        return fail(ErrorCode::Unavailable,
                    fmt::format("{} is a library, but not a CUDA module: it has no function {}", file,
                                STAGEWRIGHT_CUDA_MODULE_FUNCTION),
                    "set STAGEWRIGHT_CUDA_MODULE to the module's file, or leave it unset");
    }
    const auto function = reinterpret_cast<StagewrightCudaModuleFunction>(symbol);
    const StagewrightCudaTable* table = function();
    const char* remedy = "install program and module of the same version";
    if (!table || table->abi != STAGEWRIGHT_CUDA_ABI) {
        return fail(ErrorCode::Unavailable,
                    fmt::format("the CUDA module {} uses version {} of the interface, the program {}", file,
                                table ? table->abi : 0, STAGEWRIGHT_CUDA_ABI),
                    remedy);
    }
    if (table->tableBytes != sizeof(StagewrightCudaTable) || table->factsBytes != sizeof(StagewrightCudaFacts) ||
        table->deviceBytes != sizeof(StagewrightCudaDevice)) {
        return fail(ErrorCode::Unavailable,
                    fmt::format("the CUDA module {} is from another build: its table has {} bytes, the program's {}",
                                file, table->tableBytes, sizeof(StagewrightCudaTable)),
                    remedy);
    }
    return Module{table, file};
}

const Result<Module>& theModule()
{
    static const Result<Module> module = findModule();
    return module;
}

std::string versionText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

} // namespace stagewright::cuda
