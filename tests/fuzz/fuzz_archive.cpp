// Archives and compressed files of any bytes: imported or refused with a reason, never a crash or a hang; nothing stays
// in the folder for temporary files, and no member is written outside of it.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "require.h"
#include "traces/import/import.h"

using namespace stagewright;

namespace fs = std::filesystem;

namespace {

// The folder of this process, below the working directory of the test.
const fs::path& unpackFolder()
{
    static const fs::path folder = [] {
        const fs::path made = fs::absolute("fuzz_archive_unpack");
        fs::remove_all(made);
        fs::create_directories(made / "inner");
        setenv("TMPDIR", (made / "inner").c_str(), 1);
        setenv("STAGEWRIGHT_UNPACK_LIMIT", "1000000", 1); // what a few bytes may unpack to
        return made;
    }();
    return folder;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const fs::path& folder = unpackFolder();
    const char* path = "fuzz_archive_input";
    std::FILE* file = std::fopen(path, "wb");
    require(file != nullptr);
    require(size == 0 || std::fwrite(data, 1, size, file) == size);
    require(std::fclose(file) == 0);
    ImportOptions options;
    options.threads = 1;
    const auto imported = importTraces({path}, options);
    if (!imported) require(!imported.error().message.empty());
    if (imported) {
        for (const ImportedRun& run : imported->runs) require(run.run.timeline && !run.run.timeline->empty());
        for (const auto& refused : imported->refused) require(!refused.error.message.empty());
    }
    require(fs::is_empty(folder / "inner"));
    std::size_t beside = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++beside;
    require(beside == 1);
    require(!fs::exists("outside.json"));
    fs::remove(path);
    return 0;
}
