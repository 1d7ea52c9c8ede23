// A tool for NVTX, like Nsight: loaded by NVTX itself if NVTX_INJECTION64_PATH names it, it writes the ranges it
// receives to the file STAGEWRIGHT_NVTX_HEARD, overwritten by each process.
#include <cstdio>
#include <cstdlib>

#include <nvtx3/nvToolsExt.h>

namespace {

void write(const char* mode, const char* text, const char* name)
{
    const char* path = std::getenv("STAGEWRIGHT_NVTX_HEARD");
    if (path == nullptr) return;
    if (std::FILE* file = std::fopen(path, mode)) {
        std::fprintf(file, "%s%s", text, name);
        std::fclose(file);
    }
}

int onPush(const char* name)
{
    write("a", "push ", name);
    write("a", "\n", "");
    return 0;
}

int onPop()
{
    write("a", "pop\n", "");
    return 0;
}

} // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getTable)
{
    const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(getTable(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr) return 0;
    NvtxFunctionTable table = nullptr;
    unsigned int size = 0;
    if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0 || size <= NVTX_CBID_CORE_RangePop)
        return 0;
    *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(onPush);
    *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(onPop);
    write("w", "", "");
    return 1;
}
