// Damaged exports of Nsight Systems: refused or read as far as they go, never a crash or a hang.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "traces/import/import.h"

using namespace stagewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const char* path = "fuzz_nsight.sqlite";
    std::FILE* file = std::fopen(path, "wb");
    if (file == nullptr) std::abort();
    if (size > 0 && std::fwrite(data, 1, size, file) != size) std::abort();
    if (std::fclose(file) != 0) std::abort();
    ImportOptions options;
    options.threads = 1;
    const auto imported = importTraces({path}, options);
    if (!imported && imported.error().message.empty()) std::abort();
    if (imported)
        for (const ImportedRun& run : imported->runs)
            if (!run.run.timeline || run.run.timeline->empty()) std::abort();
    return 0;
}
